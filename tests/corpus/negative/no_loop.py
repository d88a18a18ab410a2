"""A report made once: a chain of different functions, nothing of which repeats."""


def read():
    return {"width": 3, "height": 4, "depth": 5}


def check(box):
    return all(value > 0 for value in box.values())


def volume(box):
    return box["width"] * box["height"] * box["depth"]


def surface(box):
    a, b, c = box.values()
    return 2 * (a * b + b * c + a * c)


def title():
    return "A box"


def body(box):
    return f"{volume(box)} inside, {surface(box)} outside"


def report(box):
    return title() + ": " + body(box)


def main():
    box = read()
    if check(box):
        print(report(box))


if __name__ == "__main__":
    main()
