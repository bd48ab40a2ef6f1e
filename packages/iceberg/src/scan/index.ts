export type { Comparison, Filter } from './filter.ts'
export { metadataColumns, type MetadataColumn } from './metadata-columns.ts'
export { planContext, planFiles, type PlanContext, type PlanOptions, type ScanFile } from './plan.ts'
export { unreadableTypes } from './projection.ts'
export { rowToJson, type PlainJson } from './row-json.ts'
export type { RowMap, RowStruct, RowValue, ScannedRow } from './row-value.ts'
export { scanRows, type ScanOptions } from './rows.ts'
export {
  TableReader,
  type ReaderOptions,
  type SelectedFile,
  type SelectedGroup,
  type Selection,
} from './table-reader.ts'
