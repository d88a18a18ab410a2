"""A crawler: three asyncio workers take pages from a queue, fetch, parse and index them, and queue the links they find;
pages that time out are tried again. The step is a page, whichever worker has it.
"""

import asyncio
import os
import random
import time
from collections import Counter
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

WORDS = ("loop", "trace", "step", "kernel", "wait", "rank", "halo", "queue", "batch", "shard", "token", "cache")


class Site:
    """Pages that refer to each other, with the delays and faults of a network."""

    def __init__(self, pages, seed):
        self.pages, self.seed = pages, seed
        self.faults = random.Random(seed)

    async def get(self, url):
        await asyncio.sleep(self.faults.uniform(0.002, 0.012))
        if self.faults.random() < 0.05:
            raise TimeoutError(url)
        number = int(urlsplit(url).path.rpartition("/")[2] or 0)
        rng = random.Random(self.seed + number)
        links = [rng.randrange(self.pages) for _ in range(rng.randint(2, 6))] + [(number + 1) % self.pages]
        text = "".join(f"<p>{' '.join(rng.choices(WORDS, k=50))}</p>" for _ in range(rng.randint(5, 25)))
        return f"<html><body>{text}{''.join(f'<a href=/page/{link}>more</a>' for link in links)}</body></html>"


class Page(HTMLParser):
    def __init__(self, base):
        super().__init__()
        self.base, self.links, self.words = base, [], Counter()

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.links += [urljoin(self.base, value) for name, value in attrs if name == "href"]

    def handle_data(self, data):
        self.words.update(data.split())


class Crawler:
    def __init__(self, site, workers=3, most=240, tries=3):
        self.site, self.workers, self.most, self.tries = site, workers, most, tries
        self.queue, self.seen, self.index, self.failed, self.begins = asyncio.Queue(), set(), {}, [], []

    def add(self, url, attempt=1):
        if attempt > 1 or (url not in self.seen and len(self.seen) < self.most):
            self.seen.add(url)
            self.queue.put_nowait((url, attempt))

    async def handle(self, url, attempt):
        try:
            body = await asyncio.wait_for(self.site.get(url), timeout=1.0)
        except TimeoutError:
            if attempt < self.tries:
                self.add(url, attempt + 1)
            else:
                self.failed.append(url)
            return
        page = Page(url)
        page.feed(body)
        self.index[url] = page.words
        for link in page.links:
            self.add(link)
        if len(self.index) % 60 == 0:
            print(f"{len(self.index)} pages, {self.queue.qsize()} wait")

    async def work(self):
        while True:
            url, attempt = await self.queue.get()
            self.begins.append(time.monotonic_ns())
            try:
                await self.handle(url, attempt)
            finally:
                self.queue.task_done()

    async def run(self, start):
        self.add(start)
        workers = [asyncio.create_task(self.work()) for _ in range(self.workers)]
        await self.queue.join()
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def main():
    crawler = Crawler(Site(pages=400, seed=65))
    await crawler.run("http://example.org/page/0")
    total = sum(crawler.index.values(), Counter())
    print(len(crawler.failed), "failed;", ", ".join(f"{word} {count}" for word, count in total.most_common(3)))
    return crawler.begins


if __name__ == "__main__":
    begins = asyncio.run(main())
    with open(os.path.join(os.environ["CORPUS_TRUTH"], str(os.getpid())), "w") as out:
        out.writelines(f"page {ns}\n" for ns in begins)
