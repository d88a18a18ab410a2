"""A single call that never ends; somebody interrupts it."""


def settle(value):
    while True:
        value = (value * 1103515245 + 12345) % 2**31


def main():
    print("ready", flush=True)
    settle(1)


if __name__ == "__main__":
    main()
