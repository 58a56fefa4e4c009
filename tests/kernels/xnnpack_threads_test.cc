// Every loop that XNNPACK may ask for, against the plain loop: each place once, with the tile that is left at the edges.
#if defined(TARN_HAVE_XNNPACK)

#include "kernels/dense/xnnpack_threads.h"

#include <cpuinfo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "tests/support/threads.h"

namespace tarn {
namespace {

using Place = std::array<size_t, 8>;  // where a tile begins, then its extent in the tiled dimensions

struct Calls {
  std::mutex mutex;
  std::vector<Place> places;
  size_t threads = 1;
  bool known = true;  // thread and kind of core are among those that there are

  template <typename... Sizes>
  void Add(Sizes... sizes) {
    const std::lock_guard<std::mutex> lock(mutex);
    places.push_back(Place{sizes...});
  }
  void Check(bool holds) {
    const std::lock_guard<std::mutex> lock(mutex);
    known = known && holds;
  }
};

constexpr uint32_t kOtherwise = 0, kLast = 0;

Calls& To(void* context) { return *static_cast<Calls*>(context); }

// A task of each kind, which writes down what it is given.
template <typename... Sizes>
void Plain(void* context, Sizes... sizes) {
  To(context).Add(sizes...);
}
template <typename... Sizes>
void WithThread(void* context, size_t thread, Sizes... sizes) {
  To(context).Check(thread < To(context).threads);
  To(context).Add(sizes...);
}
template <typename... Sizes>
void WithCore(void* context, uint32_t core, Sizes... sizes) {
  To(context).Check(core <= kLast);
  To(context).Add(sizes...);
}
template <typename... Sizes>
void WithCoreAndThread(void* context, uint32_t core, size_t thread, Sizes... sizes) {
  To(context).Check(core <= kLast && thread < To(context).threads);
  To(context).Add(sizes...);
}

// The plain loop: `steps` of the last dimensions, 1 for the others.
std::vector<Place> PlainLoop(const std::vector<size_t>& sizes, const std::vector<size_t>& tiles) {
  std::vector<Place> places = {Place{}};
  std::vector<Place> next;
  const size_t untiled = sizes.size() - tiles.size();
  for (size_t dim = 0; dim < sizes.size(); ++dim, places.swap(next)) {
    next.clear();
    const size_t step = dim < untiled ? 1 : tiles[dim - untiled];
    for (Place place : places) {
      for (size_t i = 0; i < sizes[dim]; i += step) {
        place[dim] = i;
        if (dim >= untiled) place[sizes.size() + dim - untiled] = std::min(step, sizes[dim] - i);
        next.push_back(place);
      }
    }
  }
  return places;
}

template <typename F>
void ExpectLikePlainLoop(const std::vector<size_t>& sizes, const std::vector<size_t>& tiles, const F& call) {
  std::vector<Place> expected = PlainLoop(sizes, tiles);
  for (const uint32_t threads : {0u, 1u, 2u, 4u}) {  // 0: no pool at all
    const test::Threads t(threads);
    Calls calls;
    calls.threads = std::max(threads, 1u);
    call(threads == 0 ? nullptr : AsPthreadpool(&t.pool), &calls);
    if (threads > 1) std::sort(calls.places.begin(), calls.places.end());  // the caller's thread alone keeps the order
    EXPECT_EQ(calls.places, expected);
    EXPECT_TRUE(calls.known);
  }
}

// Extents that tiles divide and do not, and empty ones.
template <size_t kDims, typename F>
void ForSizes(const F& f) {
  const std::vector<size_t> tiles[] = {{1, 1}, {2, 3}, {7, 4}, {100, 100}};
  const size_t last[] = {0, 1, 5, 12, 40};
  for (const std::vector<size_t>& t : tiles) {
    for (const size_t extent : last) {
      std::vector<size_t> s(kDims, 2);
      s[kDims - 1] = extent;
      if (kDims > 1) s[kDims - 2] = 9;
      if (kDims > 2) s[0] = 3;
      f(s, t);
    }
  }
}

class XnnpackThreads : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(cpuinfo_initialize()); }
};

TEST_F(XnnpackThreads, CountThemselves) {
  const test::Threads three(3);
  EXPECT_EQ(pthreadpool_get_threads_count(nullptr), 1u);
  EXPECT_EQ(pthreadpool_get_threads_count(AsPthreadpool(&three.pool)), 3u);
  EXPECT_EQ(AsPthreadpool(nullptr), nullptr);
}

TEST_F(XnnpackThreads, OneDimension) {
  ForSizes<1>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {}, [&](pthreadpool_t pool, Calls* calls) { pthreadpool_parallelize_1d(pool, Plain, calls, s[0], 0); });
  });
  ForSizes<1>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(
        s, {}, [&](pthreadpool_t pool, Calls* calls) { pthreadpool_parallelize_1d_with_thread(pool, WithThread, calls, s[0], 0); });
  });
  ForSizes<1>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {t[1]}, [&](pthreadpool_t pool, Calls* calls) {
      pthreadpool_parallelize_1d_tile_1d(pool, Plain, calls, s[0], t[1], 0);
    });
  });
}

TEST_F(XnnpackThreads, TwoDimensions) {
  ForSizes<2>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {},
                        [&](pthreadpool_t pool, Calls* calls) { pthreadpool_parallelize_2d(pool, Plain, calls, s[0], s[1], 0); });
  });
  ForSizes<2>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {}, [&](pthreadpool_t pool, Calls* calls) {
      pthreadpool_parallelize_2d_with_thread(pool, WithThread, calls, s[0], s[1], 0);
    });
  });
  ForSizes<2>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {t[1]}, [&](pthreadpool_t pool, Calls* calls) {
      pthreadpool_parallelize_2d_tile_1d(pool, Plain, calls, s[0], s[1], t[1], 0);
    });
  });
  ForSizes<2>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {t[0], t[1]}, [&](pthreadpool_t pool, Calls* calls) {
      pthreadpool_parallelize_2d_tile_2d(pool, Plain, calls, s[0], s[1], t[0], t[1], 0);
    });
  });
  ForSizes<2>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {t[1]}, [&](pthreadpool_t pool, Calls* calls) {
      pthreadpool_parallelize_2d_tile_1d_with_uarch(pool, WithCore, calls, kOtherwise, kLast, s[0], s[1], t[1], 0);
    });
  });
  ForSizes<2>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {t[0], t[1]}, [&](pthreadpool_t pool, Calls* calls) {
      pthreadpool_parallelize_2d_tile_2d_with_uarch(pool, WithCore, calls, kOtherwise, kLast, s[0], s[1], t[0], t[1], 0);
    });
  });
}

TEST_F(XnnpackThreads, ThreeDimensions) {
  ForSizes<3>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(
        s, {}, [&](pthreadpool_t pool, Calls* calls) { pthreadpool_parallelize_3d(pool, Plain, calls, s[0], s[1], s[2], 0); });
  });
  ForSizes<3>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {t[1]}, [&](pthreadpool_t pool, Calls* calls) {
      pthreadpool_parallelize_3d_tile_1d(pool, Plain, calls, s[0], s[1], s[2], t[1], 0);
    });
  });
  ForSizes<3>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {t[1]}, [&](pthreadpool_t pool, Calls* calls) {
      pthreadpool_parallelize_3d_tile_1d_with_thread(pool, WithThread, calls, s[0], s[1], s[2], t[1], 0);
    });
  });
  ForSizes<3>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {t[0], t[1]}, [&](pthreadpool_t pool, Calls* calls) {
      pthreadpool_parallelize_3d_tile_2d(pool, Plain, calls, s[0], s[1], s[2], t[0], t[1], 0);
    });
  });
  ForSizes<3>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {t[1]}, [&](pthreadpool_t pool, Calls* calls) {
      pthreadpool_parallelize_3d_tile_1d_with_uarch(pool, WithCore, calls, kOtherwise, kLast, s[0], s[1], s[2], t[1], 0);
    });
  });
  ForSizes<3>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {t[1]}, [&](pthreadpool_t pool, Calls* calls) {
      pthreadpool_parallelize_3d_tile_1d_with_uarch_with_thread(pool, WithCoreAndThread, calls, kOtherwise, kLast, s[0], s[1], s[2],
                                                                t[1], 0);
    });
  });
  ForSizes<3>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {t[0], t[1]}, [&](pthreadpool_t pool, Calls* calls) {
      pthreadpool_parallelize_3d_tile_2d_with_uarch(pool, WithCore, calls, kOtherwise, kLast, s[0], s[1], s[2], t[0], t[1], 0);
    });
  });
}

TEST_F(XnnpackThreads, FourDimensions) {
  ForSizes<4>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {}, [&](pthreadpool_t pool, Calls* calls) {
      pthreadpool_parallelize_4d(pool, Plain, calls, s[0], s[1], s[2], s[3], 0);
    });
  });
  ForSizes<4>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {t[0], t[1]}, [&](pthreadpool_t pool, Calls* calls) {
      pthreadpool_parallelize_4d_tile_2d(pool, Plain, calls, s[0], s[1], s[2], s[3], t[0], t[1], 0);
    });
  });
  ForSizes<4>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {t[0], t[1]}, [&](pthreadpool_t pool, Calls* calls) {
      pthreadpool_parallelize_4d_tile_2d_with_uarch(pool, WithCore, calls, kOtherwise, kLast, s[0], s[1], s[2], s[3], t[0], t[1],
                                                    0);
    });
  });
}

TEST_F(XnnpackThreads, FiveDimensions) {
  ForSizes<5>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {}, [&](pthreadpool_t pool, Calls* calls) {
      pthreadpool_parallelize_5d(pool, Plain, calls, s[0], s[1], s[2], s[3], s[4], 0);
    });
  });
  ForSizes<5>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {t[0], t[1]}, [&](pthreadpool_t pool, Calls* calls) {
      pthreadpool_parallelize_5d_tile_2d(pool, Plain, calls, s[0], s[1], s[2], s[3], s[4], t[0], t[1], 0);
    });
  });
}

TEST_F(XnnpackThreads, SixDimensions) {
  ForSizes<6>([](const auto& s, [[maybe_unused]] const auto& t) {
    ExpectLikePlainLoop(s, {t[0], t[1]}, [&](pthreadpool_t pool, Calls* calls) {
      pthreadpool_parallelize_6d_tile_2d(pool, Plain, calls, s[0], s[1], s[2], s[3], s[4], s[5], t[0], t[1], 0);
    });
  });
}

}  // namespace
}  // namespace tarn

#endif  // TARN_HAVE_XNNPACK
