"""Details of single comparisons: how p came about, the null distribution, and the deciding units."""
