// From a model's record and a reader's choices to exact integers. The formulas are those that
// archcards.ledger.portable states; every count is a BigInt.

const min = (a, b) => (a < b ? a : b);
const sum = (numbers) => numbers.reduce((total, one) => total + one, 0n);
const triangle = (n) => (n * (n + 1n)) / 2n;
const whole = (value) => (value === null ? null : BigInt(value));

// What a message shows of a value that is no whole number.
const shown = (text) => (/^-?\d{1,40}$/.test(text) ? text : `'${text.slice(0, 40)}'`);

/** A whole number within bounds; the message is the ledger's own. */
export function number(name, text, least, most) {
  const digits = text.trim().replace(/(?<=\d)[, _](?=\d{3}(?!\d))/g, "");
  const value = /^\d{1,40}$/.test(digits) ? BigInt(digits) : null;
  if (value === null || value < BigInt(least) || value > BigInt(most)) {
    throw new RangeError(`${name}: expected a whole number from ${least} to ${most}, came ${shown(digits)}`);
  }
  return value;
}

// The cache

function bitsOfRow([bits, block, scaleBits], width) {
  const blocks = block ? (width + BigInt(block) - 1n) / BigInt(block) : 0n;
  return width * BigInt(bits) + blocks * BigInt(scaleBits);
}

/** The terms of a model's cache on one of `ranks` ranks, or the ledger's refusal. */
export function terms(model, ranks, reserve) {
  const kept = model.cache.find((one) => one.ranks.includes(ranks));
  if (kept.refused) throw new RangeError(kept.refused);
  return kept.terms.map((term) => (reserve === "full" ? { ...term, limit: null } : term));
}

/** Tokens, or groups of `stride` tokens, that a layer holds. */
export function entries(term, view) {
  const length = term.source ? view.source : view.context;
  return (term.limit === null ? length : min(length, BigInt(term.limit))) / BigInt(term.stride);
}

/** Scalars that a term holds for one sequence. */
export function scalars(term, view) {
  return BigInt(term.layers) * BigInt(term.scalars_per_token) * entries(term, view) + BigInt(term.fixed_scalars);
}

function bits(term, view, formats) {
  const format = formats[term.kind === "memory" ? view.state : view.dtype];
  const row = sum(term.rows.map(([count, width]) => BigInt(count) * bitsOfRow(format, BigInt(width))));
  return BigInt(term.fixed_scalars) ? row : BigInt(term.layers) * row * entries(term, view);
}

/** Scalars a token adds: null where that is no whole number, as in the command's JSON. */
function growth(found) {
  const common = found.reduce((all, term) => all * BigInt(term.stride), 1n);
  const total = sum(
    found.map((term) => (BigInt(term.layers) * BigInt(term.scalars_per_token) * common) / BigInt(term.stride)),
  );
  return total % common ? null : total / common;
}

/** The cache of `view.batch` sequences, named as the command line's JSON names it. */
export function cache(model, view, formats) {
  const found = terms(model, view.ranks, view.reserve);
  const growing = found.filter((term) => !term.source);
  const kept = (all) => (sum(all.map((term) => bits(term, view, formats))) + 7n) / 8n;
  return {
    dtype: view.dtype,
    state_dtype: view.state,
    reserve: view.reserve,
    context: view.context,
    batch: view.batch,
    source_length: view.source,
    ranks: view.ranks,
    scalars: view.batch * sum(found.map((term) => scalars(term, view))),
    bytes: view.batch * kept(found),
    scalars_per_token: growth(growing),
    scalars_per_token_beyond_limits: growth(growing.filter((term) => term.limit === null)),
    scalars_per_source_token: sum(
      found.filter((term) => term.source).map((term) => BigInt(term.layers) * BigInt(term.scalars_per_token)),
    ),
    fixed_scalars: sum(found.map((term) => BigInt(term.fixed_scalars))),
    terms: found.map(({ rows, ...term }) => term),
  };
}

/** Bytes of what does not grow with the context. */
export function fixedBytes(model, view, formats) {
  const fixed = terms(model, view.ranks, view.reserve).filter((term) => BigInt(term.fixed_scalars));
  return view.batch * ((sum(fixed.map((term) => bits(term, view, formats))) + 7n) / 8n);
}

// FLOPs

// Sum over t = 1 … length of min(floor(t / stride), limit).
function compressed(length, stride, limit) {
  const blocks = (length + 1n) / stride;
  const rest = (length + 1n) % stride;
  const cap = limit === null ? blocks : min(limit, blocks);
  return stride * (triangle(cap - 1n) + cap * (blocks - cap)) + rest * cap;
}

function pairs(read, length, source) {
  const size = whole(read.size);
  switch (read.reads) {
    case "full":
      return triangle(length);
    case "all":
      return length * length;
    case "around": {
      const radius = min(size, length - 1n);
      return length * (2n * radius + 1n) - radius * (radius + 1n);
    }
    case "window":
    case "top": {
      const window = min(size, length);
      return length * window - triangle(window - 1n);
    }
    case "chunk":
      return (length / size) * triangle(size) + triangle(length % size);
    case "source":
      return source * length;
    case "compressed":
      return compressed(length, BigInt(read.stride), size);
    case "memory":
      return length;
  }
  throw new Error(`unknown: ${read.reads}`);
}

function ofLast(read, length, source) {
  const size = whole(read.size);
  switch (read.reads) {
    case "full":
    case "all":
      return length;
    case "window":
    case "top":
      return min(size, length);
    case "around":
      return min(size + 1n, length);
    case "chunk":
      return length ? ((length - 1n) % size) + 1n : 0n;
    case "source":
      return source;
    case "compressed": {
      const held = length / BigInt(read.stride);
      return size === null ? held : min(held, size);
    }
    case "memory":
      return 1n;
  }
  throw new Error(`unknown: ${read.reads}`);
}

const work = (matmul, attention) => ({ matmul, attention, total: matmul + attention });

/** Forward FLOPs of one decoding step and of the whole sequence, and of training. */
export function flops(model, view) {
  const length = model.image_sequence === null ? view.context : BigInt(model.image_sequence);
  const { weights, reading } = model.flops;
  const of = (read, count) => BigInt(read.multiply_adds) * count;
  const once = work(
    2n * (BigInt(weights.token) * length + BigInt(weights.source) * view.source + BigInt(weights.sequence)),
    2n *
      sum(
        reading.map((read) =>
          of(read, read.over === "source" ? pairs(read, view.source, 0n) : pairs(read, length, view.source)),
        ),
      ),
  );
  const step = model.decodes
    ? work(
        2n * BigInt(weights.token),
        2n *
          sum(
            reading
              .filter((read) => read.over === "context")
              .map((read) => of(read, ofLast(read, length, view.source))),
          ),
      )
    : work(once.matmul / length, once.attention / length);
  return {
    context: length,
    source_length: view.source,
    per_token: step,
    per_sequence: once,
    training_per_token: { three_times_forward: trained(model, length) },
  };
}

// As the command: of the sequence without a source.
function trained(model, length) {
  const { weights, reading } = model.flops;
  const matmul = BigInt(weights.token) * length + BigInt(weights.sequence);
  const attention = sum(
    reading
      .filter((read) => read.over === "context")
      .map((read) => BigInt(read.multiply_adds) * pairs(read, length, 0n)),
  );
  return (3n * 2n * (matmul + attention)) / length;
}
