"""Recursion only: a tree is built and searched, numbers of Fibonacci the slow way; nothing is a loop of steps."""


def build(depth, key=1):
    return (key, build(depth - 1, 2 * key), build(depth - 1, 2 * key + 1)) if depth else None


def deepest(tree):
    return 0 if tree is None else 1 + max(deepest(tree[1]), deepest(tree[2]))


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


if __name__ == "__main__":
    print(deepest(build(9)), fibonacci(17))
