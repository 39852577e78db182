"""The works that results rest on, by LaTeX citation key, with their BibTeX fields."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CitedWork:
    """A bibliography entry.

    Attributes
    ----------
    kind : {"article", "book", "inproceedings", "misc"}
        Of entry.
    author, title : str
        As BibTeX takes them: names joined by " and ", capitals that stay in braces.
    year : int
        Of print.
    fields : dict of str to str
        All others, by BibTeX's names.
    """

    kind: str
    author: str
    title: str
    year: int
    fields: dict[str, str] = field(default_factory=dict)


def _build_article(
    author: str, title: str, year: int, journal: str, volume_number: str, pages: str, doi: str = ""
) -> CitedWork:
    """Build a journal article; `volume_number` is written as `volume(number)`."""
    volume, _, number = volume_number.rstrip(")").partition("(")
    fields = {"journal": journal, "volume": volume, "number": number, "pages": pages, "doi": doi}
    return CitedWork("article", author, title, year, {name: text for name, text in fields.items() if text})


def _build_book(author: str, title: str, year: int, publisher: str, address: str) -> CitedWork:
    return CitedWork("book", author, title, year, {"publisher": publisher, "address": address})


def _build_proceedings_paper(
    author: str, title: str, year: int, booktitle: str, pages: str, **extra_fields: str
) -> CitedWork:
    return CitedWork("inproceedings", author, title, year, {"booktitle": booktitle, "pages": pages, **extra_fields})


JASA = "Journal of the American Statistical Association"

SOURCES = {
    # the program: as CITATION.cff has it
    "sigdask": CitedWork(
        "misc", "{The sigdask developers}", "{sigdask}: approximate-randomization tests at any scale", 2026,
        {"note": "Computer software"},
    ),
    # the test itself
    "yeh2000": _build_proceedings_paper(
        "Yeh, Alexander", "More accurate tests for the statistical significance of result differences", 2000,
        "COLING 2000 Volume 2: The 18th International Conference on Computational Linguistics", "947--953",
    ),
    "noreen1989": _build_book(
        "Noreen, Eric W.", "Computer-Intensive Methods for Testing Hypotheses: An Introduction", 1989,
        "John Wiley \\& Sons", "New York",
    ),
    "phipson2010": _build_article(
        "Phipson, Belinda and Smyth, Gordon K.",
        "Permutation {P}-values should never be zero: calculating exact {P}-values when permutations are randomly "
        "drawn",
        2010, "Statistical Applications in Genetics and Molecular Biology", "9(1)", "Article 39",
        "10.2202/1544-6115.1585",
    ),
    "clopper1934": _build_article(
        "Clopper, C. J. and Pearson, E. S.",
        "The use of confidence or fiducial limits illustrated in the case of the binomial", 1934, "Biometrika",
        "26(4)", "404--413", "10.1093/biomet/26.4.404",
    ),
    "fisher1935": _build_article(
        "Fisher, R. A.", "The logic of inductive inference", 1935, "Journal of the Royal Statistical Society", "98(1)",
        "39--82", "10.2307/2342435",
    ),
    # exact p-values
    "pagano1983": _build_article(
        "Pagano, Marcello and Tritchler, David", "On obtaining permutation distributions in polynomial time", 1983,
        JASA, "78(382)", "435--440", "10.1080/01621459.1983.10477990",
    ),
    "streitberg1986": _build_article(
        'Streitberg, Bernd and R{\\"o}hmel, Joachim',
        "Exact distributions for permutation and rank tests: an introduction to some recently published algorithms",
        1986, "Statistical Software Newsletter", "12(1)", "10--17",
    ),
    "horowitz1974": _build_article(
        "Horowitz, Ellis and Sahni, Sartaj", "Computing partitions with applications to the knapsack problem", 1974,
        "Journal of the ACM", "21(2)", "277--292", "10.1145/321812.321823",
    ),
    # stopping early
    "besag1991": _build_article(
        "Besag, Julian and Clifford, Peter", "Sequential {M}onte {C}arlo p-values", 1991, "Biometrika", "78(2)",
        "301--304", "10.1093/biomet/78.2.301",
    ),
    "gandy2009": _build_article(
        "Gandy, Axel",
        "Sequential implementation of {M}onte {C}arlo tests with uniformly bounded resampling risk", 2009,
        JASA, "104(488)", "1504--1511", "10.1198/jasa.2009.tm08368",
    ),
    "ding2020": _build_article(
        "Ding, Dong and Gandy, Axel and Hahn, Georg", "A simple method for implementing {M}onte {C}arlo tests", 2020,
        "Computational Statistics", "35(3)", "1373--1392", "10.1007/s00180-019-00927-6",
    ),
    # many comparisons
    "westfall1993": _build_book(
        "Westfall, Peter H. and Young, S. Stanley",
        "Resampling-Based Multiple Testing: Examples and Methods for p-Value Adjustment", 1993,
        "John Wiley \\& Sons", "New York",
    ),
    "romano2005": _build_article(
        "Romano, Joseph P. and Wolf, Michael",
        "Exact and approximate stepdown methods for multiple hypothesis testing", 2005, JASA, "100(469)", "94--108",
        "10.1198/016214504000000539",
    ),
    "holm1979": _build_article(
        "Holm, Sture", "A simple sequentially rejective multiple test procedure", 1979,
        "Scandinavian Journal of Statistics", "6(2)", "65--70",
    ),
    "hochberg1988": _build_article(
        "Hochberg, Yosef", "A sharper {B}onferroni procedure for multiple tests of significance", 1988, "Biometrika",
        "75(4)", "800--802", "10.1093/biomet/75.4.800",
    ),
    "benjamini1995": _build_article(
        "Benjamini, Yoav and Hochberg, Yosef",
        "Controlling the false discovery rate: a practical and powerful approach to multiple testing", 1995,
        "Journal of the Royal Statistical Society: Series B", "57(1)", "289--300", "10.1111/j.2517-6161.1995.tb02031.x",
    ),
    "benjamini2001": _build_article(
        "Benjamini, Yoav and Yekutieli, Daniel",
        "The control of the false discovery rate in multiple testing under dependency", 2001,
        "The Annals of Statistics", "29(4)", "1165--1188", "10.1214/aos/1013699998",
    ),
    "benjamini2008": _build_article(
        "Benjamini, Yoav and Heller, Ruth", "Screening for partial conjunction hypotheses", 2008, "Biometrics",
        "64(4)", "1215--1222", "10.1111/j.1541-0420.2007.00984.x",
    ),
    "carterette2012": _build_article(
        "Carterette, Benjamin A.",
        "Multiple testing in statistical analysis of systems-based information retrieval experiments", 2012,
        "ACM Transactions on Information Systems", "30(1)", "4:1--4:34", "10.1145/2094072.2094076",
    ),
    "piepho2004": _build_article(
        "Piepho, Hans-Peter", "An algorithm for a letter-based representation of all-pairwise comparisons", 2004,
        "Journal of Computational and Graphical Statistics", "13(2)", "456--466", "10.1198/1061860043515",
    ),
    "sakai2006": _build_proceedings_paper(
        "Sakai, Tetsuya", "Evaluating evaluation metrics based on the bootstrap", 2006,
        "Proceedings of the 29th Annual International ACM SIGIR Conference on Research and Development in "
        "Information Retrieval", "525--532", doi="10.1145/1148170.1148261",
    ),
    # intervals
    "efron1993": _build_book(
        "Efron, Bradley and Tibshirani, Robert J.", "An Introduction to the Bootstrap", 1993, "Chapman \\& Hall",
        "New York",
    ),
    "efron1987": _build_article(
        "Efron, Bradley", "Better bootstrap confidence intervals", 1987, JASA, "82(397)", "171--185",
        "10.1080/01621459.1987.10478410",
    ),
    "wilson1927": _build_article(
        "Wilson, Edwin B.", "Probable inference, the law of succession, and statistical inference", 1927, JASA,
        "22(158)", "209--212", "10.1080/01621459.1927.10502953",
    ),
    "tango1998": _build_article(
        "Tango, Toshiro",
        "Equivalence test and confidence interval for the difference in proportions for the paired-sample design",
        1998, "Statistics in Medicine", "17(8)", "891--908",
        "10.1002/(SICI)1097-0258(19980430)17:8<891::AID-SIM780>3.0.CO;2-B",
    ),
    "garthwaite1996": _build_article(
        "Garthwaite, Paul H.", "Confidence intervals from randomization tests", 1996, "Biometrics", "52(4)",
        "1387--1393", "10.2307/2532852",
    ),
    "hartigan1969": _build_article(
        "Hartigan, J. A.", "Using subsample values as typical values", 1969, JASA, "64(328)", "1303--1317",
        "10.1080/01621459.1969.10501057",
    ),
    # classical tests
    "student1908": _build_article(
        "Student", "The probable error of a mean", 1908, "Biometrika", "6(1)", "1--25", "10.1093/biomet/6.1.1",
    ),
    "wilcoxon1945": _build_article(
        "Wilcoxon, Frank", "Individual comparisons by ranking methods", 1945, "Biometrics Bulletin", "1(6)", "80--83",
        "10.2307/3001968",
    ),
    "pratt1959": _build_article(
        "Pratt, John W.", "Remarks on zeros and ties in the {W}ilcoxon signed rank procedures", 1959, JASA,
        "54(287)", "655--667", "10.1080/01621459.1959.10501526",
    ),
    "mcnemar1947": _build_article(
        "McNemar, Quinn",
        "Note on the sampling error of the difference between correlated proportions or percentages", 1947,
        "Psychometrika", "12(2)", "153--157", "10.1007/BF02295996",
    ),
    # rankings of candidates
    "evert2004": _build_proceedings_paper(
        "Evert, Stefan", "Significance tests for the evaluation of ranking methods", 2004,
        "COLING 2004: Proceedings of the 20th International Conference on Computational Linguistics", "945--951",
    ),
    "evert2005": _build_article(
        "Evert, Stefan and Krenn, Brigitte",
        "Using small random samples for the manual evaluation of statistical association measures", 2005,
        "Computer Speech \\& Language", "19(4)", "450--466", "10.1016/j.csl.2005.02.005",
    ),
    # the stream
    "salmon2011": _build_proceedings_paper(
        "Salmon, John K. and Moraes, Mark A. and Dror, Ron O. and Shaw, David E.",
        "Parallel random numbers: as easy as 1, 2, 3", 2011,
        "Proceedings of 2011 International Conference for High Performance Computing, Networking, Storage and "
        "Analysis", "16:1--16:12", doi="10.1145/2063384.2063405",
    ),
}  # fmt: skip
"""All of them; the key is the first author's name and the year."""


def format_citation(key: str) -> str:
    """Return the authors and year of a work.

    Examples
    --------
    >>> (format_citation("yeh2000"), format_citation("streitberg1986"),
    ...  format_citation("salmon2011"), format_citation("sigdask"))
    ('Yeh 2000', 'Streitberg & Röhmel 1986', 'Salmon et al. 2011', 'The sigdask developers 2026')
    """
    source = SOURCES[key]
    names = [_parse_surname(author) for author in source.author.split(" and ")]
    authors = " & ".join(names) if len(names) <= 2 else f"{names[0]} et al."
    return f"{authors} {source.year}"


def _parse_surname(author: str) -> str:
    name = author if author.startswith("{") else author.partition(",")[0]
    return name.replace('{\\"o}', "ö").strip("{}")


def format_bibtex(keys: Iterable[str]) -> str:
    """Return the BibTeX entries of works.

    Examples
    --------
    >>> print(format_bibtex(["besag1991"]))
    @article{besag1991,
      author = {Besag, Julian and Clifford, Peter},
      title = {Sequential {M}onte {C}arlo p-values},
      year = {1991},
      journal = {Biometrika},
      volume = {78},
      number = {2},
      pages = {301--304},
      doi = {10.1093/biomet/78.2.301}
    }
    """
    return "\n\n".join(_format_entry(key, SOURCES[key]) for key in keys)


def _format_entry(key: str, source: CitedWork) -> str:
    fields = {"author": source.author, "title": source.title, "year": str(source.year), **source.fields}
    lines = ",\n".join(f"  {name} = {{{text}}}" for name, text in fields.items())
    return f"@{source.kind}{{{key},\n{lines}\n}}"
