/* What NCCL says through NVTX, without NCCL: the domain, strings, schemas, payloads and order of its own calls
 * (src/include/nvtx_payload_schemas.h, collectives.cc, init.cc). Arguments: own rank, ranks, calls, a file of zeroes
 * through which the ranks meet. */
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#define ID(n) (NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + (n))
enum { INIT, ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, SEND, REDOP, OLD_ALL_REDUCE };

typedef struct { uint64_t comm; int ranks, rank, device; } Init;
typedef struct { uint64_t comm; size_t bytes; int op; } Reduce;
typedef struct { uint64_t comm; size_t bytes; } Gather;
typedef struct { uint64_t comm; size_t bytes; int peer; } Peer;

#define NUMBER(type, name, of, member) {0, NVTX_PAYLOAD_ENTRY_TYPE_##type, name, NULL, 0, offsetof(of, member), NULL, NULL}
#define COMM(of) NUMBER(UINT64, "NCCL communicator ID", of, comm)
#define BYTES(of) NUMBER(SIZE, "Message size [bytes]", of, bytes)

static const nvtxPayloadSchemaEntry_t init_schema[] = {COMM(Init), NUMBER(INT, "No. of ranks", Init, ranks),
    NUMBER(INT, "Rank", Init, rank), NUMBER(INT, "CUDA device", Init, device)};
static const nvtxPayloadSchemaEntry_t reduce_schema[] = {COMM(Reduce), BYTES(Reduce),
    {0, ID(REDOP), "Reduction operation", NULL, 0, offsetof(Reduce, op), NULL, NULL}};
static const nvtxPayloadSchemaEntry_t gather_schema[] = {COMM(Gather), BYTES(Gather)};
static const nvtxPayloadSchemaEntry_t root_schema[] = {COMM(Peer), BYTES(Peer), NUMBER(INT, "Root", Peer, peer)};
static const nvtxPayloadSchemaEntry_t peer_schema[] = {COMM(Peer), BYTES(Peer), NUMBER(INT, "Peer rank", Peer, peer)};

static nvtxDomainHandle_t domain;

static void schema(int id, const nvtxPayloadSchemaEntry_t* entries, size_t count, size_t bytes) {
  nvtxPayloadSchemaAttr_t attributes = {0};
  attributes.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                         NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
                         NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  attributes.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  attributes.entries = entries;
  attributes.numEntries = count;
  attributes.payloadStaticSize = bytes;
  attributes.schemaId = ID(id);
  if (nvtxPayloadSchemaRegister(domain, &attributes) != ID(id)) exit(3);
}
#define SCHEMA(id, entries, of) schema(id, entries, sizeof(entries) / sizeof(entries[0]), sizeof(of))

static void push(const char* function, nvtxPayloadData_t* data) {
  nvtxEventAttributes_t event = {0};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(domain, function);
  if (data) {
    event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    event.reserved0 = 1;
    event.payload.ullValue = (uint64_t)(uintptr_t)data;
  }
  nvtxDomainRangePushEx(domain, &event);
}

static void call(const char* function, int id, const void* payload, size_t bytes) {
  nvtxPayloadData_t data = {ID(id), bytes, payload};
  push(function, &data);
  usleep(200);
  nvtxDomainRangePop(domain);
}

static void communicator(const char* function, uint64_t comm, int rank, int ranks) {
  Init init = {comm, ranks, rank, 0};
  nvtxPayloadData_t data = {ID(INIT), sizeof init, &init};
  push(function, NULL);
  nvtxRangePopPayload(domain, &data, 1); /* which communicator it is, NCCL knows at the end */
}

/* All ranks go on from here together, as they do behind an all-reduce. */
static void meet(volatile int* arrived, int all) {
  __sync_fetch_and_add(arrived, 1);
  while (*arrived < all) usleep(100);
}

static void* second(void* unused) {
  Reduce reduce = {0xbeef, 64, 0};
  call("ncclAllReduce", ALL_REDUCE, &reduce, sizeof reduce);
  return unused;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const int file = open(argv[4], O_RDWR);
  int* arrived = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (arrived == MAP_FAILED) return 2;
  const int rank = atoi(argv[1]), ranks = atoi(argv[2]), calls = atoi(argv[3]);
  const uint64_t comm = 0x1234567890abcdef;
  domain = nvtxDomainCreateA("NCCL");
  nvtxPayloadEnumAttr_t operations = {0};
  operations.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID;
  operations.sizeOfEnum = sizeof(int);
  operations.schemaId = ID(REDOP);
  nvtxPayloadEnumRegister(domain, &operations);
  SCHEMA(INIT, init_schema, Init);
  SCHEMA(ALL_REDUCE, reduce_schema, Reduce);
  SCHEMA(ALL_GATHER, gather_schema, Gather);
  SCHEMA(REDUCE_SCATTER, reduce_schema, Reduce);
  SCHEMA(BROADCAST, root_schema, Peer);
  SCHEMA(SEND, peer_schema, Peer);
  nvtxDomainRangePop(domain); /* ends nothing */
  communicator("ncclCommInitRank", comm, rank, ranks);
  communicator("ncclCommSplit", 0xbeef, rank, ranks);
  for (int i = 0; i < calls; i++) {
    Reduce reduce = {comm, 1000, 0}, scatter = {comm, 300, 0};
    Gather gather = {comm, 200};
    Peer root = {comm, 500, 1}, peer = {comm, 70, 1 - rank};
    meet(arrived + i, ranks);
    if (rank == 1) usleep(50000); /* comes late */
    call("ncclAllReduce", ALL_REDUCE, &reduce, sizeof reduce);
    call("ncclAllGather", ALL_GATHER, &gather, sizeof gather);
    call("ncclReduceScatter", REDUCE_SCATTER, &scatter, sizeof scatter);
    call("ncclBroadcast", BROADCAST, &root, sizeof root);
    push("ncclGroupStart", NULL);
    nvtxDomainRangePop(domain);
    call(rank ? "ncclRecv" : "ncclSend", SEND, &peer, sizeof peer);
  }
  pthread_t thread;
  pthread_create(&thread, NULL, second, NULL);
  pthread_join(thread, NULL);
  /* In an older NCCL the next entry is where its alignment lets it be, and nothing says which communicator. */
  const nvtxPayloadSchemaEntry_t old[] = {{0, NVTX_PAYLOAD_ENTRY_TYPE_INT8, "before", NULL, 0, 0, NULL, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]", NULL, 0, 0, NULL, NULL}};
  const struct { int8_t before; size_t bytes; } payload = {-1, 42};
  schema(OLD_ALL_REDUCE, old, 2, 0);
  call("ncclAllReduce", OLD_ALL_REDUCE, &payload, sizeof payload);
  Reduce cut = {comm, 1000, 0}; /* a payload that ends before its bytes */
  call("ncclReduce", ALL_REDUCE, &cut, 8);
  communicator("ncclCommDestroy", comm, rank, ranks);
  printf("rank %d: %d\n", rank, (int)nvtxDomainIsEnabled(domain));
  return 0;
}
