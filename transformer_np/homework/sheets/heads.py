"""Cutting features into heads, and laying them side by side again."""

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes


def heads_sizes(rng):
    """The label and the sizes of each case, the same for both exercises."""
    sizes = draw_sizes(rng, "B H T K", least=3)
    H = sizes["H"]
    for label, changed in (
        ("", {}),
        ("as many tokens as heads", {"T": H}),
        ("twice as many tokens as heads", {"T": 2 * H}),
        ("as many features in a head as tokens", {"K": sizes["T"]}),
        ("as many features in a head as heads", {"K": H}),
        ("one head", {"H": 1}),
        ("one feature in each head", {"K": 1}),
        ("one row in the batch", {"B": 1}),
    ):
        new = {**sizes, **changed}
        yield label, {**new, "D": new["H"] * new["K"]}


# --- split_heads ------------------------------------------------------------------------------------------------------


def split_heads_cases(rng):
    return [
        Case(label, (rng.normal(size=(sizes["B"], sizes["T"], sizes["D"])), sizes["H"]), sizes=sizes)
        for label, sizes in heads_sizes(rng)
    ]


def split_heads(x, num_heads):
    B, T, D = x.shape
    H, K = num_heads, D // num_heads
    return x.reshape(B, T, H, K).transpose(0, 2, 1, 3)


SPLIT_HEADS = Exercise(
    F.split_heads,
    results=(Result("heads", "B H T K"),),
    cases=split_heads_cases,
    answer=split_heads,
    hints=(
        (
            "Which features belong to head 0, and which to head 1? Does a reshape alone bring all tokens of head 0 "
            "together?"
        ),
        "heads[b, h, t, k] = x[b, t, h·K + k],  K = D / H",
        "notebook 03, section 5; reshape to (B, T, H, K), then np.swapaxes or transpose.",
    ),
    difficulty=1,
    section="§5",
    chapter="Multi-head attention",
    place=1,
    mistakes="""
- reshaped in one step:  (B, T, H, K).transpose(0, 2, 1, 3) -> (B, H, T, K)
  It reshapes to (B, H, T, K) in one step, without a transpose. The shape is right, but the tokens are torn apart:
  reshape keeps the order in memory. First (B, T, H, K), then swap T and H.
- heads interleaved:  (B, T, H, K).transpose(0, 2, 1, 3) -> (B, T, K, H).transpose(0, 3, 1, 2)
  The heads are interleaved: head h gets every H-th feature, from reshaping to (B, T, K, H). Head h has the K features
  next to each other, h·K … (h + 1)·K − 1: reshape to (B, T, H, K).
- not transposed:  (B, T, H, K).transpose(0, 2, 1, 3) -> (B, T, H, K)
  The transpose is missing: the shape is (B, T, H, K). The heads must stand before the tokens, (B, H, T, K), so that `@`
  works on (T, K).
- (B, T, K, H):  (B, T, H, K).transpose(0, 2, 1, 3) -> (B, T, K, H)
  The shape is (B, T, K, H): the sizes in reshape are swapped, and the transpose is missing. Reshape to (B, T, H, K),
  then swap T and H: (B, H, T, K).
- num_heads taken for d_k:  H, K = num_heads, D // num_heads -> H, K = D // num_heads, num_heads
  num_heads is taken for the size of a head: the result has K heads of H features each. The number of heads comes first,
  reshape to (B, T, num_heads, D // num_heads).
- T and K swapped:  (0, 2, 1, 3) -> (0, 2, 3, 1)
  The last two axes are swapped: (B, H, K, T) instead of (B, H, T, K). Tokens are rows, features are columns.
- T and K swapped, not H:  (0, 2, 1, 3) -> (0, 3, 2, 1)
  The wrong axes are swapped: T with K, which gives (B, K, H, T). Swap T with H: (B, H, T, K).
- H and K swapped:  (0, 2, 1, 3) -> (0, 1, 3, 2)
  The wrong axes are swapped: H with K, which gives (B, T, K, H). Swap T with H: (B, H, T, K).
- heads before the batch:  (0, 2, 1, 3) -> (2, 0, 1, 3)
  The heads stand before the batch, (H, B, T, K). The batch stays first: (B, H, T, K).
- batch and heads in one axis:  (0, 2, 1, 3) -> (0, 2, 1, 3).reshape(B * H, T, K)
  Batch and heads are folded into one axis, (B·H, T, K). They must stay apart: (B, H, T, K).
- tokens cut instead of features:  (B, T, H, K).transpose(0, 2, 1, 3) -> (B, H, T // H, D)
  The tokens are cut into H parts instead of the features, (B, H, T/H, D). Every head has all T tokens and K = D/H of
  the features.
- transposed before the reshape:
    x.reshape(B, T, H, K).transpose(0, 2, 1, 3) -> x.swapaxes(1, 2).reshape(B, H, T, K)
  x is transposed to (B, D, T) before it is reshaped, so that tokens and features are mixed. Reshape first, (B, T, H,
  K), then swap T and H.
- not split:  return x
  x comes back as it was, (B, T, D). The features must be cut into heads: (B, H, T, K).
- heads joined along the batch:  (0, 2, 1, 3) -> (2, 0, 1, 3).reshape(H * B, T, K)
  The heads are joined along the batch, (H·B, T, K). They need an axis of their own, the second: (B, H, T, K).
- heads joined along the tokens:  (0, 2, 1, 3) -> (0, 2, 1, 3).reshape(B, H * T, K)
  The heads are joined along the tokens, (B, H·T, K). They need an axis of their own, the second: (B, H, T, K).
- reshaped to (T, B, H, K):  (B, T, H, K).transpose(0, 2, 1, 3) -> (T, B, H, K).transpose(1, 2, 0, 3)
  x is reshaped to (T, B, H, K), but it is (B, T, D): reshape does not swap B and T, it tears them apart.
- reshaped to (B, H, K, T):  (B, T, H, K).transpose(0, 2, 1, 3) -> (B, H, K, T).swapaxes(2, 3)
  x is reshaped to (B, H, K, T) in one step: the tokens are torn apart. Reshape to (B, T, H, K), where T stays in its
  place, then swap T and H.
- all features in every head:  x.reshape(B, T, H, K).transpose(0, 2, 1, 3) -> x[:, None].repeat(H, axis=1)
  Every head gets all D features. The features are cut among the heads, K = D/H for each.
- first head only:  x.reshape(B, T, H, K).transpose(0, 2, 1, 3) -> x[:, None, :, :K].repeat(H, axis=1)
  Every head gets the same features, the first K. Head h has the features h·K … (h + 1)·K − 1.
- heads in reverse:  (0, 2, 1, 3) -> (0, 2, 1, 3)[:, ::-1]
  The heads are in reverse order. Head 0 has the first K features.
""",
)


# --- merge_heads ------------------------------------------------------------------------------------------------------


def merge_heads_cases(rng):
    return [
        Case(label, (rng.normal(size=[sizes[letter] for letter in "BHTK"]),), sizes=sizes)
        for label, sizes in heads_sizes(rng)
    ]


def merge_heads(x):
    B, H, T, K = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T, H * K)


MERGE_HEADS = Exercise(
    F.merge_heads,
    results=(Result("x", "B T D"),),
    cases=merge_heads_cases,
    answer=merge_heads,
    hints=(
        "A reshape may only join axes that are neighbours. Which two are to be joined, and are they neighbours?",
        "x[b, t, h·K + k] = heads[b, h, t, k]",
        "notebook 03, exercise 1; np.swapaxes or transpose first, then reshape.",
    ),
    difficulty=1,
    section="§5 step 6",
    chapter="Multi-head attention",
    place=2,
    mistakes="""
- reshaped without a transpose:  x.transpose(0, 2, 1, 3) -> x
  It reshapes to (B, T, H·K) without a transpose. The shape is right, but the tokens are torn apart: in memory all
  tokens of head 0 come first. Swap H and T before the reshape.
- heads interleaved:  (0, 2, 1, 3) -> (0, 2, 3, 1)
  The heads are interleaved: feature 0 of all heads, then feature 1, from (B, T, K, H). The features of a head stay next
  to each other: (B, T, H, K) before the reshape.
- T and K swapped:  (0, 2, 1, 3) -> (0, 1, 3, 2)
  The wrong axes are swapped before the reshape: T with K. Swap H with T, so that the heads stand beside their features.
- H and K swapped:  (0, 2, 1, 3) -> (0, 3, 2, 1)
  The wrong axes are swapped before the reshape: H with K. Swap H with T, so that the heads stand beside their features.
- tokens moved to the end:  (0, 2, 1, 3) -> (0, 3, 1, 2)
  The axes are moved to (B, K, H, T) before the reshape. It must be (B, T, H, K): only H and T change places.
- not reshaped:  return x.transpose(0, 2, 1, 3)
  The reshape is missing: the shape is (B, T, H, K). The heads are laid side by side in one axis, (B, T, H·K).
- heads added:  return x.sum(axis=1)
  The heads are added up, (B, T, K). They are laid side by side, (B, T, H·K): mixing them is the output projection's
  work.
- heads averaged:  return x.mean(axis=1)
  The mean over the heads is taken, (B, T, K). They are laid side by side, (B, T, H·K): mixing them is the output
  projection's work.
- first head only:  return x[:, 0]
  Only the first head comes back, (B, T, K). All heads are laid side by side, (B, T, H·K).
- last head only:  return x[:, -1]
  Only the last head comes back, (B, T, K). All heads are laid side by side, (B, T, H·K).
- along the tokens:  x.transpose(0, 2, 1, 3).reshape(B, T, H * K) -> x.reshape(B, H * T, K)
  The heads are joined along the tokens, (B, H·T, K). They are joined along the features, (B, T, H·K).
- along the tokens, token by token:  (B, T, H * K) -> (B, T * H, K)
  The heads are joined along the tokens, (B, T·H, K). They are joined along the features, (B, T, H·K).
- not merged:  return x
  The heads come back as they were, (B, H, T, K). They must be laid side by side, (B, T, H·K).
- tokens joined too:  (B, T, H * K) -> (B, T * H * K)
  All is joined to one axis, (B, T·H·K). The tokens keep theirs: (B, T, H·K).
- all joined, no transpose:  x.transpose(0, 2, 1, 3).reshape(B, T, H * K) -> x.reshape(B, T * H * K)
  All is joined to one axis, without a transpose. The tokens keep theirs, (B, T, H·K), and H and T are swapped first.
- B and T swapped in the reshape:  (B, T, H * K) -> (T, B, H * K)
  B and T are swapped in the reshape: (T, B, H·K). The batch stays first: (B, T, H·K).
- T before B in the transpose:  (0, 2, 1, 3) -> (2, 0, 1, 3)
  The transpose puts T before B, (T, B, H, K), and the reshape tears the tokens apart. Only H and T change places.
- (B, D, T):  (0, 2, 1, 3).reshape(B, T, H * K) -> (0, 1, 3, 2).reshape(B, H * K, T)
  The result is transposed, (B, H·K, T). Tokens are rows: (B, T, H·K).
- (T, B, D):  (0, 2, 1, 3).reshape(B, T, H * K) -> (2, 0, 1, 3).reshape(T, B, H * K)
  The tokens stand before the batch, (T, B, H·K). The batch stays first: (B, T, H·K).
- batch and tokens in one axis:  (B, T, H * K) -> (B * T, H * K)
  Batch and tokens are folded into one axis, (B·T, H·K). They must stay apart: (B, T, H·K).
- heads in reverse:  x.transpose -> x[:, ::-1].transpose
  The heads are in reverse order. Head 0 has the first K features.
""",
)

EXERCISES = [SPLIT_HEADS, MERGE_HEADS]
