/*
 * A protein as a point: how often each word of k residues occurs in it, hashed into so many dimensions, with length 1.
 * Proteins with common ancestry share words, so their points are near each other.
 */

/** Which words are counted, and into how many dimensions they are hashed. */
export interface Model {
  k: number
  dimensions: number
}

/** The model's name in the database: `kmer3x256`. */
export function modelName({ k, dimensions }: Model): string {
  return `kmer${k}x${dimensions}`
}

const notAResidue = /[^ACDEFGHIKLMNPQRSTVWY]/

/** A sequence that holds something else than the 20 residues: trying again will not help. */
export class UnreadableSequence extends Error {}

/** The sequence's embedding. */
export function embed(sequence: string, { k, dimensions }: Model): Float32Array {
  const unreadable = notAResidue.exec(sequence)
  if (unreadable !== null) {
    throw new UnreadableSequence(`residue ${unreadable.index + 1} is ${JSON.stringify(unreadable[0])}`)
  }
  const counts = new Float64Array(dimensions)
  for (let start = 0; start + k <= sequence.length; start += 1) {
    const place = hash(sequence, start, k) % dimensions
    counts[place] = (counts[place] ?? 0) + 1
  }
  const length = Math.hypot(...counts) || 1
  return Float32Array.from(counts, (count) => count / length)
}

// FNV-1a over the letters of one word.
function hash(sequence: string, start: number, k: number): number {
  let value = 0x811c9dc5
  for (let nth = start; nth < start + k; nth += 1) value = Math.imul(value ^ sequence.charCodeAt(nth), 0x01000193)
  return value >>> 0
}

/** How alike two embeddings are: the cosine of their angle, since both have length 1. */
export function similarity(a: Float32Array, b: Float32Array): number {
  let sum = 0
  for (let nth = 0; nth < a.length; nth += 1) sum += (a[nth] ?? 0) * (b[nth] ?? 0)
  return sum
}

/** As text, to travel in a payload. */
export function encodeEmbedding(embedding: Float32Array): string {
  return Buffer.from(embedding.buffer, embedding.byteOffset, embedding.byteLength).toString('base64')
}

export function decodeEmbedding(text: string): Float32Array {
  const bytes = Uint8Array.from(Buffer.from(text, 'base64'))
  return new Float32Array(bytes.buffer)
}
