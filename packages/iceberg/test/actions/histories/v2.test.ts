import { anyMaintenance } from './any-maintenance.ts'

anyMaintenance(2)
