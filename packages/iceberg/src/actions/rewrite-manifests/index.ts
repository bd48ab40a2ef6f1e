export { executeRewriteManifests, type RewriteManifestsResult } from './execute.ts'
export {
  planRewriteManifests,
  type ManifestGroup,
  type ManifestReason,
  type PlannedManifestFile,
  type RewriteManifestsOptions,
  type RewriteManifestsPlan,
} from './plan.ts'
