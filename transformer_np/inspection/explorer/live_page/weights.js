// The numbers in the page: base64 of compressed bytes, in float32, float16 or int8.

// All bytes of a base64 text, which is compressed with gzip.
async function unpacked(base64) {
  const stream = new Blob([bytesOf(base64)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

function halfToNumber(half) {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

// The parameters { name: Matrix }. In int8 a row of a matrix is whole numbers times the scale of the row; vectors, which
// have one row, stay float32.  shapes: [name, rows, columns] of each; floats: the scales and the vectors
async function parametersFrom({ format, shapes, large }) {
  const { weights, floats } = JSON.parse(byId("weights").textContent);
  byId("weights").remove(); // the text takes as much memory as the numbers
  const buffer = await unpacked(weights);
  const exact = floats && new Float32Array(await unpacked(floats));
  const numbers = { float32: Float32Array, float16: Uint16Array, int8: Int8Array }[format];
  const all = new numbers(buffer);
  // All sums are in float64; in a large model the weights themselves are not: it would take twice the memory.
  const Numbers = large ? Float32Array : Float64Array;
  const halves = format === "float16" && Float32Array.from({ length: 1 << 16 }, (_, half) => halfToNumber(half));
  const named = {};
  let [at, inExact] = [0, 0];
  for (const [name, rows, columns] of shapes) {
    const matrix = (named[name] = new Matrix(rows, columns, new Numbers(rows * columns)));
    if (format === "int8" && rows === 1) {
      matrix.data.set(exact.subarray(inExact, (inExact += columns)));
      continue;
    }
    const part = all.subarray(at, (at += rows * columns));
    if (format === "float32") matrix.data.set(part);
    else if (format === "float16") for (let i = 0; i < part.length; i++) matrix.data[i] = halves[part[i]];
    else
      for (let row = 0, i = 0; row < rows; row++)
        for (const scale = exact[inExact++], end = i + columns; i < end; i++)
          matrix.data[i] = Math.fround(part[i] * scale);
  }
  return named;
}
