import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { makeSample } from './sample.ts'

const pathOf = (name: string) => fileURLToPath(new URL(`../../data/${name}`, import.meta.url))

/** The files of the data folder. */
export const data = {
  sample: pathOf('sample.fasta'),
  damaged: pathOf('damaged.fasta'),
  heldOut: pathOf('held-out.tsv'),
} as const

/** What the proteins without terms do in truth, by accession. */
export function readHeldOut(): Map<string, string[]> {
  const lines = readFileSync(data.heldOut, 'utf8').trim().split('\n')
  return new Map(
    lines.map((line) => {
      const [accession = '', terms = ''] = line.split('\t')
      return [accession, terms.split(',')]
    }),
  )
}

/** Writes the data folder anew. A test sees that it is what was made. */
export function writeData(): void {
  const { fasta, heldOut, damaged } = makeSample()
  writeFileSync(data.sample, fasta)
  writeFileSync(data.heldOut, heldOut)
  writeFileSync(data.damaged, damaged)
}
