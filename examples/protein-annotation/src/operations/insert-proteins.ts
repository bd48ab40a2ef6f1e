import { operation } from '@fencepost/engine'
import { z } from 'zod'
import { readPages, type Protein } from '../sequences/fasta.ts'

/** Reads a FASTA file page by page into the table of proteins. */
export const insertProteins = operation('insert_proteins', {
  payload: z.strictObject({ dataset: z.string(), file: z.string(), page_size: z.int().min(1).default(64) }),
  lock: ({ dataset }) => `dataset/${dataset}`,
  async run({ payload: { dataset, file, page_size }, attempt, signal }) {
    let page = 0
    let proteins = 0
    for await (const entries of readPages(file, page_size)) {
      signal.throwIfAborted()
      page += 1
      // A page that an earlier attempt has finished is not written again.
      await attempt.step(`page ${page}`, async () => {
        await attempt.transaction((client) => client.query(insertPage, [dataset, JSON.stringify(entries.map(rowOf))]))
        return { proteins: entries.length }
      })
      proteins += entries.length
      await attempt.emit('insert_proteins.page_done', {
        message: `page ${page}: ${proteins} proteins so far`,
        fields: { page, proteins },
        progress: { current: proteins },
      })
    }
    await attempt.progress(proteins, proteins)
    return { pages: page, proteins }
  },
})

// A page may be written twice, when a worker dies between its commit and the end of its step: the second changes nothing.
const insertPage = `
  insert into annotation.proteins (dataset, accession, name, go_terms, sequence)
  select $1, accession, name, go_terms, sequence
    from jsonb_to_recordset($2::jsonb) as entry (accession text, name text, go_terms text[], sequence text)
      on conflict do nothing`

function rowOf({ accession, name, goTerms, sequence }: Protein) {
  return { accession, name, go_terms: goTerms, sequence }
}
