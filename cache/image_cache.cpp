// The layers in order, and one compile per key at a time.
#include "cache/image_cache.hpp"

#include <fmt/format.h>

#include <future>
#include <mutex>
#include <set>
#include <unordered_map>

#include "cache/digest.hpp"
#include "cache/entry.hpp"
#include "cache/entry_name.hpp"
#include "cache/layer.hpp"
#include "cache/lock_holder.hpp"
#include "logpjit/error.hpp"

namespace logpjit::cache {
namespace {

using ImagePointer = std::shared_ptr<const Image>;

/// A compile under way in some thread of this process.
struct Flight {
  std::uint64_t generation = 0;
  std::shared_future<ImagePointer> landing;
};

/// What a thread that wants an image finds: it, someone else's compile, or
/// neither.
struct Boarding {
  ImagePointer kept;
  std::shared_future<ImagePointer> landing;
};

Digest image_digest(const Image& image) { return digest(image.bytes); }

Found compiled(const Key& key, const ImageCache::Compile& compile) {
  auto image = std::make_shared<const Image>(compile());
  if (image->bytes.empty()) {
    throw Error(ErrorCode::kCompileFailed,
                fmt::format("the compiler reported success but made no code "
                            "for the kernel\n{}",
                            key.text()));
  }
  return {std::move(image), Origin::kCompiled};
}

CacheOptions checked(CacheOptions options) {
  if (options.off && options.never_compile) {
    throw Error(ErrorCode::kInvalidArgument,
                "caches are switched off and so is compiling: no kernel could "
                "ever be had; drop one of the two settings");
  }
  return options;
}

}  // namespace

struct ImageCache::State {
  explicit State(CacheOptions given)
      : options(std::move(given)),
        files(options.files ? *options.files : real_file_system()),
        warnings(options.warn),
        pace(options.limits) {
    if (options.off) return;
    if (options.directory) {
      user.emplace(files, *options.directory, Role::kUser, warnings);
    }
    for (const auto& directory : options.read_only) {
      read_only.push_back(
          std::make_unique<Layer>(files, directory, Role::kReadOnly, warnings));
    }
  }

  Found produce(const Key& key, const Compile& compile);
  std::optional<Found> find_in_layers(const Key& key);
  std::optional<Found> find_in_user_layer(const Key& key);
  Found compile_and_publish(const Key& key, const Compile& compile);
  LockFile::Hold lock(const Key& key);
  void publish(const Key& key, const Image& image);
  void trim_if_due(std::uint64_t published_bytes);

  Boarding board(const Key& key, std::promise<ImagePointer>& promise);
  void land(const Key& key, ImagePointer image);
  ImagePointer in_memory(const Key& key);
  std::optional<Found> usable(std::optional<Image> image, Origin origin);

  const CacheOptions options;
  FileSystem& files;
  Warnings warnings;
  TrimPace pace;
  std::optional<Layer> user;
  std::vector<std::unique_ptr<Layer>> read_only;

  ForkSafeMutex mutex;  // of all that follows
  std::unordered_map<std::string, ImagePointer> memory;
  std::unordered_map<std::string, Flight> flights;
  std::set<Digest> rejected;  // image bytes that a device would not take
};

/// With neither, the caller has taken the flight upon itself.
Boarding ImageCache::State::board(const Key& key,
                                  std::promise<ImagePointer>& promise) {
  const std::lock_guard guard(mutex);
  const auto kept = memory.find(key.hash());
  if (kept != memory.end()) return {kept->second, {}};
  Flight& flight = flights[key.hash()];
  // One begun before a fork has no thread to land it here.
  if (flight.landing.valid() && flight.generation == fork_generation()) {
    return {nullptr, flight.landing};
  }
  flight = {fork_generation(), promise.get_future().share()};
  return {};
}

void ImageCache::State::land(const Key& key, ImagePointer image) {
  const std::lock_guard guard(mutex);
  if (image) memory.insert_or_assign(key.hash(), std::move(image));
  flights.erase(key.hash());
}

ImagePointer ImageCache::State::in_memory(const Key& key) {
  const std::lock_guard guard(mutex);
  const auto found = memory.find(key.hash());
  return found == memory.end() ? nullptr : found->second;
}

/// A layer that cannot be written keeps what was rejected, so it is remembered
/// here.
std::optional<Found> ImageCache::State::usable(std::optional<Image> image,
                                               Origin origin) {
  if (!image) return std::nullopt;
  {
    const std::lock_guard guard(mutex);
    if (!rejected.empty() && rejected.contains(image_digest(*image))) {
      return std::nullopt;
    }
  }
  return Found{std::make_shared<const Image>(*std::move(image)), origin};
}

std::optional<Found> ImageCache::State::find_in_user_layer(const Key& key) {
  if (!user) return std::nullopt;
  return usable(user->read(key), Origin::kDisk);
}

std::optional<Found> ImageCache::State::find_in_layers(const Key& key) {
  if (auto found = find_in_user_layer(key)) return found;
  for (const auto& layer : read_only) {
    if (auto found = usable(layer->read(key), Origin::kReadOnly)) return found;
    if (auto found = usable(layer->read_sealed(key), Origin::kReadOnly)) {
      return found;
    }
  }
  return std::nullopt;
}

LockFile::Hold ImageCache::State::lock(const Key& key) {
  const auto file = user ? user->lock_file() : nullptr;
  if (file == nullptr) return {};
  const off_t offset = lock_offset(key.hash());
  const std::chrono::duration<double> longest(options.lock_timeout_s);
  auto result = file->acquire(offset, longest);
  if (result.outcome == LockFile::Outcome::kTimedOut) {
    warnings.once(
        "lock",
        fmt::format("waited {} s for {}, held by {}; compiling without it",
                    options.lock_timeout_s, file->path(),
                    lock_holder(files, file->path(), offset)));
  }
  return std::move(result.hold);
}

void ImageCache::State::trim_if_due(std::uint64_t published_bytes) {
  if (!pace.due(published_bytes)) return;
  const auto directory = user->path(false);
  const auto file = user->lock_file();
  if (!directory || file == nullptr) return;
  // Busy means that another process trims already.
  const auto result = file->acquire(kTrimLock, {});
  if (result.outcome != LockFile::Outcome::kTimedOut) {
    trim(files, *directory, options.limits);
  }
}

void ImageCache::State::publish(const Key& key, const Image& image) {
  if (!user) return;
  try {
    const auto entry = encode(key.text(), image);
    if (user->publish(key, entry)) trim_if_due(entry.size());
  } catch (const std::exception& error) {
    warnings.once("write", error.what());
  }
}

Found ImageCache::State::compile_and_publish(const Key& key,
                                             const Compile& compile) {
  const LockFile::Hold hold = lock(key);
  // Another process may have published while this one waited.
  if (auto found = find_in_user_layer(key)) return *std::move(found);
  Found made = compiled(key, compile);
  publish(key, *made.image);
  return made;
}

Found ImageCache::State::produce(const Key& key, const Compile& compile) {
  if (auto found = find_in_layers(key)) return *std::move(found);
  if (options.never_compile) {
    throw Error(ErrorCode::kNotCached,
                fmt::format("this kernel is in no cache, and compiling is "
                            "switched off; fill the cache beforehand "
                            "('logpjit cache explain' says what differs)\n{}",
                            key.text()));
  }
  return compile_and_publish(key, compile);
}

ImageCache::ImageCache(CacheOptions options)
    : state_(std::make_unique<State>(checked(std::move(options)))) {}

ImageCache::~ImageCache() = default;

const CacheOptions& ImageCache::options() const { return state_->options; }

Found ImageCache::find_or_compile(const Key& key, const Compile& compile) {
  if (state_->options.off) return compiled(key, compile);
  std::promise<ImagePointer> promise;
  const Boarding boarding = state_->board(key, promise);
  if (boarding.kept) return {boarding.kept, Origin::kMemory};
  if (boarding.landing.valid()) {
    return {boarding.landing.get(), Origin::kMemory};
  }
  try {
    Found found = state_->produce(key, compile);
    state_->land(key, found.image);
    promise.set_value(found.image);
    return found;
  } catch (...) {
    state_->land(key, nullptr);
    promise.set_exception(std::current_exception());
    throw;
  }
}

std::optional<Found> ImageCache::find(const Key& key) {
  if (auto image = state_->in_memory(key)) {
    return Found{std::move(image), Origin::kMemory};
  }
  auto found = state_->find_in_layers(key);
  if (found) {
    const std::lock_guard guard(state_->mutex);
    state_->memory.insert_or_assign(key.hash(), found->image);
  }
  return found;
}

void ImageCache::reject(const Key& key, const std::string& reason) {
  {
    const std::lock_guard guard(state_->mutex);
    const auto kept = state_->memory.find(key.hash());
    if (kept == state_->memory.end()) return;
    state_->rejected.insert(image_digest(*kept->second));
    state_->memory.erase(kept);
  }
  state_->warnings.once("rejected",
                        fmt::format("{} was refused ({}); compiling it afresh",
                                    entry_name(key), reason));
  if (!state_->user) return;
  const auto stored = state_->user->read(key);
  if (stored && !state_->usable(*stored, Origin::kDisk)) {
    state_->user->set_aside(entry_name(key));
  }
}

}  // namespace logpjit::cache
