import { z } from 'zod'
import { isName } from '../catalogs/address.ts'
import { actionNames, actionOptions } from './action-options.ts'

const name = z.string().refine(isName, 'is not a name that can be addressed')

/** What a job of table_maintenance is submitted with. */
export const maintenancePayload = z.strictObject({
  catalog: name,
  database: z.string().refine((text) => text.split('.').every(isName), 'is not a name that can be addressed'),
  table: name,
  actions: z.array(z.enum(actionNames)).min(1).max(50),
  options: actionOptions.optional(),
  dry_run: z.literal(false).optional().describe('Dry runs are answered at once and never become jobs.'),
})
export type MaintenancePayload = z.output<typeof maintenancePayload>

export const operationName = 'table_maintenance'
