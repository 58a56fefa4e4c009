// What every table of kernels must agree on about the controls of slot memory: which chunks have no factors (a prompt is then read
// by steps), and how a mean takes a member.
#ifndef TARN_KERNELS_SLOT_LIMITS_H_
#define TARN_KERNELS_SLOT_LIMITS_H_

namespace tarn {

// Of controls that exponentials make, the log of the largest gain if no weight exceeds 1. Chunks share it between the two factors,
// since next to a gain of e^80 a weight that matters could lie below f32's normal range, which some CPUs flush to zero.
constexpr float kSlotLogLimit = 80.0f;

// Of summed controls, the largest gain and the largest weight: a weight is multiplied by q.k and summed before the gain comes.
constexpr float kSlotSumLimit = 0x1p+87f;

// Where a slot stops counting its members: 2^24 + 1 is no f32. From there on the mean forgets as an average over the last 2^24
// members does.
constexpr double kSlotMostMembers = 0x1p24;

// A running mean of c members, the new one included: decay a = 1 - 1/c, write b = 1/c.
struct JoinedMean {
  float decay;
  float write;
  float members;  // from now on
};

// A mean of `members` takes one more.
inline JoinedMean JoinMean(float members) {
  const double count = static_cast<double>(members) + 1.0;
  return {static_cast<float>((count - 1.0) / count), static_cast<float>(1.0 / count),
          static_cast<float>(count < kSlotMostMembers ? count : kSlotMostMembers)};
}

}  // namespace tarn

#endif  // TARN_KERNELS_SLOT_LIMITS_H_
