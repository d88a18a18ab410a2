// A spans payload gives back what went in, and a damaged one is refused instead of read.
#include <random>

#include "tests/check.h"

using namespace strobe;

int main() {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; round++) {
    SpanColumns columns;
    std::vector<OpenSpan> carry;
    std::vector<Close> closes;
    int64_t now = int64_t(random() >> 8);
    const size_t n = random() % 5000;
    for (size_t i = 0; i < n; i++) {
      now += int64_t(random() % (1ull << (random() % 50)));
      columns.start_ns.push_back(now);
      columns.duration_ns.push_back(random() % 50 == 0 ? kOpen : int64_t(random() % (1ull << (random() % 60))));
      columns.path.push_back(uint32_t(random() % (1u << (random() % 20))));
    }
    for (size_t i = random() % 9; i-- > 0;)
      carry.push_back({random(), int64_t(random() >> 1), uint32_t(random()), uint32_t(random() % 1000)});
    for (size_t i = random() % 9; i-- > 0;) closes.push_back({random(), int64_t(random() >> 1)});
    SpansHeader header{};
    header.first_row = random();
    header.first_ns = n ? columns.start_ns[0] : now;
    std::string payload = encode_spans(header, carry, closes, columns);
    SpansView view;
    SpanColumns out;
    CHECK(view_spans(payload, uint32_t(n), view));
    CHECK(decode_spans(view, uint32_t(n), out));
    CHECK(out.start_ns == columns.start_ns && out.duration_ns == columns.duration_ns && out.path == columns.path);
    CHECK(view.header.first_row == header.first_row && view.carry.size() == carry.size() &&
          view.closes.size() == closes.size());
    for (size_t i = 0; i < closes.size(); i++)
      CHECK(view.closes[i].row == closes[i].row && view.closes[i].end_ns == closes[i].end_ns);
    CHECK(!view_spans(std::string_view(payload).substr(0, payload.size() - 1), uint32_t(n), view));
    if (n) {  // any byte may be wrong: decoding ends, in bounds, with or without an answer
      payload[random() % payload.size()] ^= char(1 + random() % 255);
      if (view_spans(payload, uint32_t(n), view)) (void)decode_spans(view, uint32_t(n), out);
    }
  }
  // "123456789" is the check value that every description of CRC-32C gives.
  CHECK(crc32c("123456789", 9) == 0xE3069283u);
}
