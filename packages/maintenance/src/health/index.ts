export { gatherHealthFacts, type GatherOptions } from './gather-health-facts.ts'
export {
  health,
  type HealthLoss,
  type LossCode,
  type MaintenanceAction,
  type TableHealth,
  type WastedBytes,
} from './health.ts'
export type { HealthFacts, PlannedActions } from './health-facts.ts'
export { healthToJson, type HealthJson } from './health-json.ts'
export {
  effectiveSettings,
  healthSettings,
  type EffectiveSetting,
  type EffectiveSettings,
  type HealthSetting,
  type HealthSettings,
} from './health-settings.ts'
export type { HealthIssue, IssueCode } from './issues.ts'
export type { RecommendedAction } from './recommended-actions.ts'
export { defaultScanCosts, type ScanCosts, type ScanShape } from './scan-cost.ts'
export { tableHealth } from './table-health.ts'
