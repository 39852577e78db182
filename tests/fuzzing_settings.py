"""Hostile answers of a web hook, from a fixed seed."""

from fuzzing import TOKENS, mutate_bytes

ANSWER_LINES = (
    *("HTTP/1.1 200 OK", "HTTP/1.1 204 No Content", "HTTP/1.0 500 x", "HTTP/1.1 302 Found", "HTTP/9.9 999", "HTTP/1.1 100 Continue"),
    *("Content-Length: 5", "Content-Length: -1", "Content-Length: 99999999999999999999", "Transfer-Encoding: chunked", "é: ü"),
    *("Content-Encoding: gzip", "Location: /", "Location: http://[", "Location: //h", "Location: file:///etc/passwd", "Location:"),
    *("Connection: close", "Connection: upgrade", "Set-Cookie: a=b", "X: " + "x" * 70_000, " folded", ":", "", "5", "zz", "hello"),
)  # fmt: skip


def draw_answer(dice):
    """Return the parts of what a server of web hooks may send: lines of HTTP in any order, some of them damaged."""
    lines = [
        line + dice.choice(("\r\n", "\r\n", "\r\n", "\n", "\r"))
        for line in dice.choices(ANSWER_LINES, k=dice.randint(0, 6))
    ]
    if dice.random() < 0.7:
        lines.insert(0, dice.choice(ANSWER_LINES[:6]) + "\r\n")
    if dice.random() < 0.7:
        lines += ["\r\n", dice.choice(TOKENS)]
    return [mutate_bytes("".join(lines).encode(errors="surrogateescape"), dice, 0.3)]
