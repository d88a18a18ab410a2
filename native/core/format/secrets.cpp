#include "core/format/secrets.h"

#include <ctype.h>

#include <algorithm>
#include <vector>

namespace strobe {
namespace {

constexpr std::string_view kHidden = "***";
constexpr std::string_view kSecret[] = {"token",  "password", "passwd",  "passphrase", "secret",     "secrets",
                                        "apikey", "apitoken", "authkey", "secretkey",  "credential", "credentials"};
constexpr std::string_view kKeyOf[] = {"api",  "access",  "private",    "secret",
                                       "auth", "account", "encryption", "signing"};
// Tokens of models of language, which programs have options for.
constexpr std::string_view kNoSecret[] = {"pad",   "eos",  "bos", "unk", "sep",     "cls",  "mask",
                                          "start", "stop", "end", "per", "special", "image"};
struct Key {
  std::string_view begin;
  size_t least;  // characters behind that
};
constexpr Key kKeys[] = {{"hf_", 20},         {"sk-", 20},    {"ghp_", 20},  {"gho_", 20},  {"ghu_", 20},
                         {"ghs_", 20},        {"ghr_", 20},   {"AKIA", 16},  {"ASIA", 16},  {"AIza", 30},
                         {"github_pat_", 20}, {"glpat-", 16}, {"xoxb-", 16}, {"xoxp-", 16}, {"xoxa-", 16},
                         {"npm_", 30},        {"pypi-", 30},  {"nvapi-", 20}};

bool in_name(char c) { return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.'; }

// The words of a name, in small letters: those of --hf-token, HF_TOKEN and hfToken are hf and token.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  char before = 0;
  for (const char c : name) {
    const bool letter = isalnum((unsigned char)c);
    if ((!letter || (isupper((unsigned char)c) && islower((unsigned char)before))) && !words.back().empty())
      words.emplace_back();
    if (letter) words.back() += char(tolower((unsigned char)c));
    before = c;
  }
  return words;
}

bool is_secret(std::string_view name) {
  if (name.empty() || !std::ranges::all_of(name, in_name)) return false;
  const std::vector<std::string> words = words_of(name);
  const std::string_view last = words.back(), before = words.size() > 1 ? words[words.size() - 2] : "";
  if (last == "key") return std::ranges::count(kKeyOf, before) > 0;
  return std::ranges::count(kSecret, last) > 0 && (last != "token" || std::ranges::count(kNoSecret, before) == 0);
}

// name=value and name="value" anywhere: shell commands, code, parameters of addresses.
void hide_assigned(std::string& word) {
  for (size_t at = word.find('='); at != word.npos; at = word.find('=', at + 1)) {
    size_t begin = at;
    while (begin > 0 && in_name(word[begin - 1])) begin--;
    if (!is_secret(std::string_view(word).substr(begin, at - begin))) continue;
    const bool quoted = at + 1 < word.size() && (word[at + 1] == '"' || word[at + 1] == '\'');
    const size_t value = at + 1 + quoted;
    const size_t end =
        std::min(quoted ? word.find(word[at + 1], value) : word.find_first_of("& \t\n;),", value), word.size());
    if (value == end) continue;
    word.replace(value, end - value, kHidden);
  }
}

void hide_passwords(std::string& word) {  // scheme://user:password@host
  for (size_t at = word.find("://"); at != word.npos; at = word.find("://", at + 3)) {
    const size_t begin = at + 3, end = std::min(word.find_first_of("/?# \t\n\"'", begin), word.size());
    const std::string_view authority = std::string_view(word).substr(begin, end - begin);
    const size_t who = authority.rfind('@'), colon = authority.find(':');
    if (who != authority.npos && colon < who) word.replace(begin + colon + 1, who - colon - 1, kHidden);
  }
}

void hide_keys(std::string& word) {
  for (const Key& key : kKeys) {
    for (size_t at = word.find(key.begin); at != word.npos; at = word.find(key.begin, at + 1)) {
      if (at > 0 && isalnum((unsigned char)word[at - 1])) continue;
      const size_t begin = at + key.begin.size();
      size_t end = begin;
      bool digit = false;
      for (; end < word.size() && (isalnum((unsigned char)word[end]) || word[end] == '_' || word[end] == '-'); end++)
        digit |= isdigit((unsigned char)word[end]) != 0;
      if (digit && end - begin >= key.least) word.replace(begin, end - begin, kHidden);
    }
  }
}

void hide_header(std::string& word) {  // of HTTP, as curl -H takes it
  constexpr std::string_view name = "authorization:";
  const auto same = [](char a, char b) { return tolower((unsigned char)a) == b; };
  const auto found = std::ranges::search(word, name, same);
  if (found.empty()) return;
  const size_t begin = size_t(found.end() - word.begin()),
               end = std::min(word.find_first_of("\n\"'", begin), word.size());
  word.replace(begin, end - begin, std::string(" ").append(kHidden));
}

}  // namespace

std::string WithoutSecrets::shown(std::string_view word) {
  const bool option = word.starts_with('-');
  if (next_ && !option) return next_ = false, std::string(kHidden);
  const size_t equals = word.find('=');
  const std::string_view head = word.substr(0, equals),
                         name = head.substr(std::min(head.find_first_not_of("-+~"), head.size()));
  const bool secret = is_secret(name);
  next_ = option && secret && equals == word.npos;
  if (secret && equals != word.npos) return std::string(head).append("=").append(kHidden);
  std::string shown(word);
  hide_assigned(shown);
  hide_passwords(shown);
  hide_keys(shown);
  hide_header(shown);
  return shown;
}

}  // namespace strobe
