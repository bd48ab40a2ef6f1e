export {
  demonstrate,
  type ActionState,
  type DemoOptions,
  type DemoResult,
  type DemoWatcher,
  type ExaminedTable,
  type TableProgress,
} from './demonstrate.ts'
export { proveRows, type RowProof } from './row-proof.ts'
