import { similarity } from './embedding.ts'

/** A protein whose terms are known. */
export interface Annotated {
  accession: string
  goTerms: readonly string[]
  embedding: Float32Array
}

export interface Neighbour {
  accession: string
  similarity: number
}

/** A predicted term, how much of the neighbourhood has it, and which neighbours those are. */
export interface PredictedTerm {
  goTerm: string
  score: number
  evidence: Neighbour[]
}

const neighbours = 5
const enough = 0.5

/** The terms that at least half of the nearest neighbours have, weighted by how near they are; the surest first. */
export function predictTerms(query: Float32Array, known: readonly Annotated[]): PredictedTerm[] {
  const nearest = known
    .map((protein) => ({ protein, similarity: similarity(query, protein.embedding) }))
    .toSorted((a, b) => b.similarity - a.similarity || (a.protein.accession < b.protein.accession ? -1 : 1))
    .slice(0, neighbours)
  const weight = nearest.reduce((sum, one) => sum + one.similarity, 0)
  const evidence = new Map<string, Neighbour[]>()
  for (const { protein, similarity: near } of nearest) {
    for (const goTerm of protein.goTerms) {
      const rounded = { accession: protein.accession, similarity: Math.round(near * 1000) / 1000 }
      evidence.set(goTerm, [...(evidence.get(goTerm) ?? []), rounded])
    }
  }
  return [...evidence]
    .map(([goTerm, some]) => ({ goTerm, score: scoreOf(some, weight), evidence: some }))
    .filter(({ score }) => score >= enough)
    .toSorted((a, b) => b.score - a.score || (a.goTerm < b.goTerm ? -1 : 1))
}

function scoreOf(evidence: readonly Neighbour[], weight: number): number {
  const sum = evidence.reduce((total, one) => total + one.similarity, 0)
  return weight === 0 ? 0 : Math.round((sum / weight) * 1000) / 1000
}
