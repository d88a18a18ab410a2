"""A single pass over something without any framework: a loop that runs its body once."""


def load():
    return list(range(1000))


def transform(values):
    return [value * value % 97 for value in values]


def store(values):
    return sum(values)


for _ in range(1):
    data = load()
    result = store(transform(data))
print(result)
