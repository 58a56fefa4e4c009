#include "runtime/text/bpe.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/text/code_point.h"

namespace tarn {

void Bpe::TakeArrays(Bump* bump, uint32_t max_word_bytes) {
  symbols_ = TakeArray<Symbol>(*bump, max_word_bytes);
  // Every merge takes one pair out of the queue and puts two in: there are never more than twice the pairs of the word.
  queue_ = TakeArray<uint64_t>(*bump, uint64_t{2} * max_word_bytes);
}

int32_t Bpe::FindWord(Span<const uint8_t> word) const {
  if (!is_over_bytes()) return tables_->vocabulary.whole_words ? tables_->vocabulary.strings.Find(word) : -1;
  const Span<const uint32_t> slots = tables_->bpe.word_slots;
  if (slots.empty()) return -1;
  for (size_t slot = HashWord(word) & (slots.size() - 1);; slot = (slot + 1) & (slots.size() - 1)) {
    if (slots[slot] == kEmptySlot) return -1;
    const Span<const uint8_t> piece = tables_->Piece(slots[slot]);
    if (piece.size() == word.size() && std::memcmp(piece.data(), word.data(), word.size()) == 0) {
      return static_cast<int32_t>(slots[slot]);
    }
  }
}

uint32_t Bpe::FindMerge(uint32_t left, uint32_t right) const {
  const Span<const uint32_t> slots = tables_->bpe.merge_slots;
  for (size_t slot = HashPair(left, right) & (slots.size() - 1);; slot = (slot + 1) & (slots.size() - 1)) {
    if (slots[slot] == kEmptySlot) return kEmptySlot;
    const BpeMerge& merge = tables_->bpe.merges[slots[slot]];
    if (merge.left == left && merge.right == right) return slots[slot];
  }
}

void Bpe::Add(uint32_t id, uint32_t length) {
  const uint32_t place = symbol_count_++;
  symbols_[place] = {id, length, place - 1, place + 1};  // of the first one, 0 - 1 is kNoSymbol
}

int32_t Bpe::IdOfByte(uint8_t byte, bool is_last) const {
  const Span<const int32_t> ids = tables_->bpe.byte_ids;
  return ids[is_last && ids.size() > kByteTokens ? kByteTokens + byte : byte];
}

WordToken Bpe::FirstLetter(Span<const uint8_t> word) const {
  if (is_over_bytes()) return {IdOfByte(word[0], word.size() == 1), 1};
  const uint32_t bytes = DecodeCodePoint(word.begin(), word.end()).bytes;
  return {tables_->vocabulary.strings.Find(word.subspan(0, bytes)), bytes};
}

bool Bpe::AddBytes(Span<const uint8_t> character) {
  const Span<const int32_t> ids = tables_->bpe.byte_ids;
  if (is_over_bytes() || std::any_of(character.begin(), character.end(), [&](uint8_t byte) { return ids[byte] < 0; })) return false;
  for (const uint8_t byte : character) Add(static_cast<uint32_t>(ids[byte]), 1);
  return true;
}

bool Bpe::Begin(Span<const uint8_t> word) {
  const BpeTables& bpe = tables_->bpe;
  symbol_count_ = 0;
  queued_ = 0;
  bool is_whole = true;
  uint32_t unknown = 0;  // bytes of the unknown token that is not added yet
  WordToken letter = {};
  for (; !word.empty(); word = word.subspan(letter.length, word.size() - letter.length)) {
    letter = FirstLetter(word);
    if (letter.id < 0 && AddBytes(word.subspan(0, letter.length))) continue;
    if (letter.id < 0 && bpe.unk_id < 0) {
      is_whole = false;
      continue;
    }
    if (unknown > 0 && (letter.id >= 0 || !bpe.fuse_unk)) {
      Add(static_cast<uint32_t>(bpe.unk_id), unknown);
      unknown = 0;
    }
    if (letter.id >= 0) {
      Add(static_cast<uint32_t>(letter.id), letter.length);
    } else {
      unknown += letter.length;
    }
  }
  if (unknown > 0) Add(static_cast<uint32_t>(bpe.unk_id), unknown);
  if (symbol_count_ > 0) symbols_[symbol_count_ - 1].next = kNoSymbol;
  return is_whole;
}

void Bpe::Queue(uint32_t left) {
  const uint32_t right = symbols_[left].next;
  const uint32_t rank = FindMerge(symbols_[left].id, symbols_[right].id);
  if (rank == kEmptySlot) return;
  queue_[queued_++] = uint64_t{rank} << 32 | left;
  std::push_heap(queue_.begin(), queue_.begin() + queued_, std::greater<>());
}

void Bpe::MergeAll() {
  const Span<const BpeMerge> merges = tables_->bpe.merges;
  for (uint32_t left = 0; left + 1 < symbol_count_; ++left) Queue(left);
  while (queued_ > 0) {
    std::pop_heap(queue_.begin(), queue_.begin() + queued_, std::greater<>());
    const uint64_t top = queue_[--queued_];
    const auto place = static_cast<uint32_t>(top);
    const uint32_t id = merges[static_cast<size_t>(top >> 32)].id;
    Symbol& symbol = symbols_[place];
    if (symbol.length == 0 || symbol.next == kNoSymbol) continue;
    Symbol& right = symbols_[symbol.next];
    // What was queued may have changed since. Another pair that makes the same token counts as the same.
    const uint32_t rank = FindMerge(symbol.id, right.id);
    if (rank == kEmptySlot || merges[rank].id != id) continue;
    symbol.id = id;
    symbol.length += right.length;
    symbol.next = right.next;
    right.length = 0;
    if (symbol.next != kNoSymbol) symbols_[symbol.next].previous = place;
    if (symbol.previous != kNoSymbol) Queue(symbol.previous);
    if (symbol.next != kNoSymbol) Queue(place);
  }
}

WordTokens Bpe::Encode(Span<const uint8_t> word) {
  auto* tokens = reinterpret_cast<WordToken*>(queue_.data());
  static_assert(sizeof(WordToken) == sizeof(uint64_t));
  const int32_t whole = FindWord(word);
  if (whole >= 0) {
    new (tokens) WordToken{whole, static_cast<uint32_t>(word.size())};
    return {{tokens, 1}, false};
  }
  const bool is_whole = Begin(word);
  if (!is_whole && is_over_bytes()) {
    size_t place = 0;
    for (size_t i = 0; i < word.size(); ++i) {
      if (IdOfByte(word[i], i + 1 == word.size()) >= 0) symbols_[place++].length = AlphabetWidth(*tables_, word[i]);
    }
  }
  MergeAll();
  size_t count = 0;
  for (uint32_t place = 0; place < symbol_count_; place = symbols_[place].next) {
    new (&tokens[count++]) WordToken{static_cast<int32_t>(symbols_[place].id), symbols_[place].length};
  }
  return {{tokens, count}, !is_whole};
}

}  // namespace tarn
