import { formatFasta, type Protein } from './fasta.ts'
import { randomNumbers } from './random.ts'

/*
 * The sample is made, not collected: seven families that descend from ancestors drawn at random, with mutations,
 * insertions and deletions. Two families share a domain, and some members have drifted so far that their neighbours are
 * a matter of luck, so that a prediction can be wrong. One protein in five is held out: the file does not say what it
 * does, held-out.tsv does.
 */

const residues = 'ACDEFGHIKLMNPQRSTVWY'

interface Family {
  name: string
  goTerms: string[]
  domains: readonly string[]
}

// Terms of the Gene Ontology that such proteins would have.
const families: readonly Family[] = [
  { name: 'Kinase-like protein', goTerms: ['GO:0004672', 'GO:0005524'], domains: ['P-loop', 'kinase'] },
  { name: 'Helicase-like protein', goTerms: ['GO:0004386', 'GO:0005524'], domains: ['P-loop', 'helicase'] },
  { name: 'Homeodomain-like protein', goTerms: ['GO:0003677', 'GO:0006355'], domains: ['homeobox'] },
  { name: 'Peptidase-like protein', goTerms: ['GO:0006508', 'GO:0008233'], domains: ['peptidase', 'linker'] },
  { name: 'Transporter-like protein', goTerms: ['GO:0016020', 'GO:0022857'], domains: ['membrane', 'linker'] },
  { name: 'Reductase-like protein', goTerms: ['GO:0016491', 'GO:0050661'], domains: ['reductase'] },
  { name: 'Ribosomal-like protein', goTerms: ['GO:0003735', 'GO:0006412'], domains: ['ribosomal'] },
]
const membersPerFamily = 64
const domainLength = 70
const seed = 20_260_105

/** What the data folder holds: the sample, what was held out of it, and a sample with one damaged sequence. */
export function makeSample(): { fasta: string; heldOut: string; damaged: string } {
  const random = randomNumbers(seed)
  const domains = new Map<string, string>()
  for (const domain of new Set(families.flatMap((family) => family.domains))) {
    domains.set(domain, randomSequence(random, domainLength))
  }
  const proteins = families.flatMap((family) => {
    const ancestor = family.domains.map((domain) => domains.get(domain)).join('') + randomSequence(random, 40)
    return Array.from({ length: membersPerFamily }, (_, nth) => ({
      name: `${family.name} ${nth + 1}`,
      goTerms: family.goTerms,
      sequence: evolve(random, ancestor, 0.05 + random() * 0.55),
    }))
  })
  const shuffled = shuffle(random, proteins).map((protein, nth) => ({ ...protein, accession: accessionOf('FP', nth) }))
  const isHeldOut = (nth: number) => nth % 5 === 2
  return {
    fasta: shuffled.map((one, nth) => formatFasta(isHeldOut(nth) ? { ...one, goTerms: [] } : one)).join(''),
    heldOut: shuffled
      .map((one, nth) => (isHeldOut(nth) ? `${one.accession}\t${one.goTerms.join(',')}\n` : ''))
      .join(''),
    damaged: damage(shuffled.slice(0, 60)).map(formatFasta).join(''),
  }
}

// A scanner's question marks, in the middle of one sequence.
function damage(proteins: readonly Protein[]): Protein[] {
  return proteins.map((protein, nth) => ({
    ...protein,
    accession: accessionOf('DM', nth),
    sequence: nth === 33 ? protein.sequence.replace(/^(.{50}).{3}/, '$1???') : protein.sequence,
  }))
}

function accessionOf(prefix: string, nth: number): string {
  return `${prefix}${String(nth + 1).padStart(4, '0')}`
}

function randomSequence(random: () => number, length: number): string {
  return Array.from({ length }, () => pick(random, residues)).join('')
}

/** A descendant: each residue is replaced with this chance; a few are lost or gained. */
function evolve(random: () => number, ancestor: string, mutated: number): string {
  let sequence = ''
  for (const residue of ancestor) {
    const chance = random()
    if (chance < 0.02) continue
    if (chance < 0.04) sequence += pick(random, residues)
    sequence += random() < mutated ? pick(random, residues) : residue
  }
  return sequence
}

function shuffle<T>(random: () => number, items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, place: random() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ item }) => item)
}

function pick(random: () => number, letters: string): string {
  return letters.charAt(Math.floor(random() * letters.length))
}
