export { tableFacts, type FactsOptions, type FileFacts, type TableFacts } from './table-facts.ts'
export type { FragmentedPartition } from './fragmentation.ts'
