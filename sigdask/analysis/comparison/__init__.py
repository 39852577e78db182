"""What is asked of test sets, the jobs that count it, and the results that counts give."""
