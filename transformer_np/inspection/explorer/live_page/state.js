const model = modelFrom(data);
const tokenizers = data.tokenizers.map(tokenizerFrom);
globalThis.live = { model, tokenizers, decode };
