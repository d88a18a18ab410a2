// secrets.h - command lines are recorded without what is secret in them: values of options, of variables and of
// parameters of addresses whose names are those of secrets, passwords in addresses, and what looks like a key of a
// known service.
#pragma once
#include <string>
#include <string_view>

namespace strobe {

// Takes the words of one command line, in order.
class WithoutSecrets {
 public:
  std::string shown(std::string_view word);

 private:
  bool next_ = false;  // the next word is the value of a secret option
};

}  // namespace strobe
