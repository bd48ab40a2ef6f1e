import { readFileSync } from 'node:fs'

// What the example should come to, computed without the engine, without a database and without the example's code: words
// are counted in a map, the hash is that of its definition, distances are angles, neighbours are sorted.

export interface ByHand {
  accession: string
  goTerms: string[]
  vector: number[]
}

/** All proteins of a FASTA file, embedded. */
export function embedByHand(path: string, k: number, dimensions: number): ByHand[] {
  const entries = readFileSync(path, 'utf8').split('>').slice(1)
  return entries.map((entry) => {
    const [header = '', ...lines] = entry.split('\n')
    const sequence = lines.join('')
    const words = new Map<string, number>()
    for (const start of Array.from(sequence.slice(k - 1)).keys()) {
      const word = sequence.slice(start, start + k)
      words.set(word, (words.get(word) ?? 0) + 1)
    }
    const vector = Array.from({ length: dimensions }, () => 0)
    for (const [word, count] of words) {
      const place = Number(fnv1a(word) % BigInt(dimensions))
      vector[place] = (vector[place] as number) + count
    }
    const length = Math.sqrt(vector.map((value) => value ** 2).reduce((sum, value) => sum + value, 0))
    return {
      accession: header.split(' ')[0] ?? '',
      goTerms: /GO=(\S+)/.exec(header)?.[1]?.split(',') ?? [],
      vector: vector.map((value) => value / length),
    }
  })
}

/** 32-bit FNV-1a, as it is defined. */
function fnv1a(text: string): bigint {
  let hash = 2_166_136_261n
  for (const byte of Buffer.from(text)) hash = ((hash ^ BigInt(byte)) * 16_777_619n) % 2n ** 32n
  return hash
}

/** Of every protein without terms: the terms that carry at least half the weight of its five nearest neighbours. */
export function predictByHand(proteins: readonly ByHand[]): Map<string, Map<string, string[]>> {
  const known = proteins.filter(({ goTerms }) => goTerms.length > 0)
  const unknown = proteins.filter(({ goTerms }) => goTerms.length === 0)
  return new Map(
    unknown.map(({ accession, vector }) => {
      const near = known.map((one) => ({ ...one, cosine: dot(vector, one.vector) }))
      near.sort((a, b) => b.cosine - a.cosine)
      const five = near.slice(0, 5)
      const weight = five.map(({ cosine }) => cosine).reduce((sum, value) => sum + value)
      const terms = [...new Set(five.flatMap(({ goTerms }) => goTerms))].map((term) => {
        const having = five.filter(({ goTerms }) => goTerms.includes(term))
        const share = having.map(({ cosine }) => cosine).reduce((sum, value) => sum + value) / weight
        return { term, share, having: having.map((one) => one.accession) }
      })
      const enough = terms.filter(({ share }) => share >= 0.5)
      return [accession, new Map(enough.map(({ term, having }) => [term, having]))]
    }),
  )
}

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, nth) => sum + value * (b[nth] as number), 0)
}
