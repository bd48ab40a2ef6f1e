import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'

/** One entry of a FASTA file: `>accession name GO=GO:0000001,GO:0000002`, then the sequence. */
export interface Protein {
  accession: string
  name: string
  /** What is known of its function; empty where nothing is. */
  goTerms: string[]
  sequence: string
}

/** The entries of a FASTA file, a page at a time; the file is never in memory as a whole. */
export async function* readPages(path: string, pageSize: number): AsyncGenerator<Protein[]> {
  let page: Protein[] = []
  for await (const protein of readFasta(path)) {
    page.push(protein)
    if (page.length < pageSize) continue
    yield page
    page = []
  }
  if (page.length > 0) yield page
}

async function* readFasta(path: string): AsyncGenerator<Protein> {
  let protein: Protein | undefined
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
    if (line.startsWith('>')) {
      if (protein !== undefined) yield protein
      protein = parseHeader(line)
    } else if (protein !== undefined) {
      protein.sequence += line.trim()
    } else if (line.trim() !== '') {
      throw new Error(`${path} is not FASTA: it begins with ${JSON.stringify(line.slice(0, 40))}, not with ">".`)
    }
  }
  if (protein !== undefined) yield protein
}

function parseHeader(line: string): Protein {
  const [accession = '', ...words] = line.slice(1).trim().split(/\s+/)
  const terms = words.find((word) => word.startsWith('GO='))
  return {
    accession,
    name: words.filter((word) => word !== terms).join(' '),
    goTerms: terms === undefined ? [] : terms.slice('GO='.length).split(','),
    sequence: '',
  }
}

/** An entry as FASTA, in lines of 60 residues. */
export function formatFasta({ accession, name, goTerms, sequence }: Protein): string {
  const terms = goTerms.length > 0 ? ` GO=${goTerms.join(',')}` : ''
  return `>${accession} ${name}${terms}\n${sequence.replaceAll(/.{1,60}/g, '$&\n')}`
}
