#include "adapters/mpi/call_recording.h"

#include "adapters/mpi/call_paths.h"
#include "adapters/mpi/call_regions.h"
#include "adapters/mpi/handles.h"
#include "adapters/mpi/transfer_rows.h"
#include "adapters/mpi/waiting_calls.h"
#include "include/strobe.h"

namespace strobe::mpi {

namespace {

struct Inside {
  Inside() { inside = true; }
  ~Inside() { inside = false; }
  Inside(const Inside&) = delete;
};

// Messages that a probe has taken out of the queue, with the communicator that they came by.
auto& matched = *new Handles<const Communicator*, 4>;

int32_t relative(int peer, int rank, const Constants& is) {
  if (peer == is.any_source) return kAnybody;
  if (peer == is.proc_null) return kNullProcess;
  return peer - rank;
}

Peers peers_of(const Arguments& where, const Word* words, const Library& library, const Communicator* communicator) {
  Peers peers;
  if (!communicator) return peers;
  if (where.to >= 0) peers.to = relative(int(words[where.to]), communicator->rank, library.constants);
  if (where.from >= 0) peers.from = relative(int(words[where.from]), communicator->rank, library.constants);
  return peers;
}

Word handle_in(const Library& library, Word place) { return library.handle_at(reinterpret_cast<const void*>(place)); }
Word file_in(Word place) { return *reinterpret_cast<const Word*>(place); }  // a pointer with every MPI

// The communicator that a call is about. What it frees is forgotten here: soon the handle may stand for another.
const Communicator* owner_of(const Library& library, const Arguments& where, const Word* words) {
  const Word word = words[where.of < 0 ? 0 : where.of];
  switch (where.owner) {
    case Owner::communicator: {
      const Word comm = library.handle(word);  // the function itself reports a wrong one
      return comm == library.constants.comm_null ? nullptr : communicator_of(library, comm);
    }
    case Owner::window:
      return window_of(library, library.handle(word)).of;
    case Owner::file:
      return communicator_of_file(library, word);
    case Owner::communicator_pointer:
      return drop_communicator(library, handle_in(library, word));
    case Owner::window_pointer:
      return drop_window(library, handle_in(library, word));
    case Owner::file_pointer:
      return drop_file(file_in(word));
    case Owner::message:
      return matched.drop(handle_in(library, word));
    case Owner::none:
      break;
  }
  return nullptr;
}

void note_rank(const Library& library) {
  int rank = 0, size = 0;
  if (library.comm_rank(library.comm_world, &rank) == 0 && library.comm_size(library.comm_world, &size) == 0)
    strobe_note_rank(rank, size);
  communicator_of(library, library.comm_world);  // whether it was spawned is not known for ever
}

// One call, from before it is made to after it.
class Recording {
 public:
  Recording(const Library& library, int number, Word* words, bool rows)
      : library_(library),
        number_(number),
        call_(description(number)),
        words_(words),
        last_(call_.arity ? words[call_.arity - 1] : 0),
        rows_(rows),
        communicator_(owner_of(library, call_.arguments, words)),
        waiting_(library, call_.kind, words) {
    if (call_.kind == kRequestFree || call_.kind == kCancel) request_ = handle_in(library, words[0]);
    if (call_.kind == kFreeType) drop_type(handle_in(library, words[0]));
    if ((call_.kind == kNewComm || call_.kind == kIdup) && communicator_ && call_.arguments.tag < 0)
      child_ = ++communicator_->children;
    if (call_.kind == kRequestFree) freed_ = request_freed(request_, over_);
    if (call_.kind == kCancel) request_cancelled(request_);
    const int8_t status = has_status() ? call_.arguments.status : int8_t(-1);
    if (rows && status >= 0 && (words[status] == library.constants.status_ignore || !words[status]))
      words[status] = Word(status_);
  }

  Peers peers() const { return peers_of(call_.arguments, words_, library_, communicator_); }

  // Whether a poll found something. An error is something, too: of a request that failed.
  bool found(int result) const {
    const WaitArguments at = wait_arguments(call_.kind);
    return result != 0 || *reinterpret_cast<const int*>(words_[at.flag]) > 0;
  }

  // While the span is open, so that rows belong to it.
  void made(int result, uint64_t began) {
    const uint64_t ticks = strobe_ticks() - began;
    Facts facts;
    if (result == 0) facts = facts_of(library_, number_, call_.arguments, call_.large, communicator_, words_);
    facts.call = uint16_t(number_);
    facts.communicator = communicator_;
    if (is_one_sided(facts.traffic))
      facts.to_tag = window_of(library_, library_.handle(words_[call_.arguments.of])).number;
    const bool begins = call_.kind == kRequest || call_.kind == kPersistent || call_.kind == kIdup;
    if (result == 0 && has_status() && rows_)
      complete(facts, read_status(library_, reinterpret_cast<const void*>(words_[call_.arguments.status]), false));
    if (rows_) begins ? write_begin(facts, ticks, call_.kind == kPersistent) : write_call(facts, began, ticks);
    if (result == 0 && is_of_epoch(facts.traffic)) epoch(facts, began, ticks);
    if (result == 0) remember(facts, began);
    waiting_.over(words_, result, began, rows_);
    if (freed_ && rows_) needs_status(over_.facts) ? write_lost(over_) : write_end(over_, began);
  }

 private:
  bool has_status() const {
    return call_.arguments.traffic != Traffic::none && call_.arguments.status >= 0 &&
           (call_.kind == kPlain || call_.kind == kMprobe);
  }

  // The calls that end an epoch do not name the ranks that it was begun for.
  void epoch(Facts facts, uint64_t began, uint64_t ticks) {
    const Word handle = library_.handle(words_[call_.arguments.of]);
    Window& window = window_of(library_, handle);
    const bool of_access = facts.traffic == Traffic::start || facts.traffic == Traffic::complete;
    std::vector<int>& group = of_access ? window.access : window.exposure;
    if (call_.kind == kBeginsEpoch) group = ranks_in_window(library_, handle, library_.handle(words_[0]));
    const bool locks = call_.kind == kPlain, one = call_.arguments.to >= 0;
    const int target = locks && one ? int(words_[call_.arguments.to]) : kNone;
    if (facts.traffic == Traffic::lock && (!one || int(words_[0]) == library_.constants.lock_shared))
      facts.traffic = Traffic::shared_lock;
    if (rows_ && !(locks && one && target < 0))
      write_epoch(facts, locks ? std::vector{target} : group, window.number, began, ticks);
    if (!locks && call_.kind != kBeginsEpoch) group.clear();
  }

  void remember(const Facts& facts, uint64_t began) {
    const Library& library = library_;
    switch (call_.kind) {
      case kRequest:
      case kPersistent:
      case kIdup: {
        if (facts.traffic == Traffic::none) break;
        const bool messages = is_message(facts.traffic);
        if (messages && facts.to == kNone && facts.from == kNone) break;  // MPI_PROC_NULL
        Request request;
        request.facts = facts, request.began = began;
        if (call_.kind == kIdup) request.made = words_[call_.arity - 2], request.child = child_;
        if (call_.kind == kPersistent)
          request_prepared(handle_in(library, last_), request);
        else
          request_begins(handle_in(library, last_), request);
        break;
      }
      case kStart:
        request_starts(handle_in(library, words_[0]), began);
        break;
      case kStartall:
        for (int i = 0; i < int(words_[0]); i++)
          request_starts(library.handle_at(reinterpret_cast<const void*>(words_[1]), size_t(i)), began);
        break;
      case kMprobe:
      case kImprobe:
        if (communicator_) matched.put(handle_in(library, words_[call_.kind == kMprobe ? 3 : 4]), communicator_);
        break;
      case kNewComm:
        if (!communicator_) break;
        if (call_.arguments.tag >= 0)
          made_by_some(library, *communicator_, int(words_[call_.arguments.tag]), handle_in(library, last_));
        else
          made_from(library, *communicator_, child_, handle_in(library, last_));
        break;
      case kNewWin:
        if (communicator_) window_made(*communicator_, handle_in(library, last_));
        break;
      case kNewFile:
        if (communicator_) file_opened(*communicator_, file_in(last_));
        break;
      default:
        break;
    }
  }

  const Library& library_;
  const int number_;
  const Description& call_;
  Word* const words_;
  const Word last_;
  const bool rows_;
  const Communicator* const communicator_;
  Waiting waiting_;
  Word request_ = 0;
  uint32_t child_ = 0;
  bool freed_ = false;
  Request over_;
  alignas(8) char status_[64];
};

}  // namespace

int record(const Library& library, int number, Word* words, Invoke invoke, const void* caller, const void* frame) {
  const Description& call = description(number);
  void* real = library.real[number];
  Inside here;
  const bool active = strobe_active();
  Recording recording(library, number, words, active);
  if (!active) {
    int result = invoke(real, words);
    if (call.kind < kIprobe || recording.found(result)) recording.made(result, 0);
    return result;
  }
  if (call.kind == kFreeType) return invoke(real, words);  // no communication
  const uint32_t region = region_of(number, call.name, call.role, recording.peers(), call_path(caller, frame));
  if (call.kind >= kIprobe) {
    const uint64_t began = strobe_ticks();
    int result = invoke(real, words);
    if (recording.found(result)) {
      strobe_enter_at(region, began);
      recording.made(result, began);
      strobe_leave(region);
    } else {
      strobe_count("mpi_polls_that_found_nothing", 1);
    }
    return result;
  }
  strobe_enter(region);
  const uint64_t began = strobe_ticks();
  // MPI ends this process now, perhaps by a signal: what was recorded is sealed first.
  if (call.kind == kAbort) strobe_note_exit(int(words[1]));
  int result = invoke(real, words);
  if (call.kind == kInit && result == 0) note_rank(library);
  if (call.kind == kFinalize) requests_left(write_lost);
  recording.made(result, began);
  strobe_leave(region);
  return result;
}

}  // namespace strobe::mpi
