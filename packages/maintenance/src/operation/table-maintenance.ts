import { operation, type Operation } from '@fencepost/engine'
import type { z } from 'zod'
import { lockKeyOf } from '../catalogs/address.ts'
import type { Catalogs } from '../catalogs/catalogs.ts'
import { maintenancePayload, operationName } from './payload.ts'
import { runMaintenance } from './run-maintenance.ts'

export interface TableMaintenanceOptions {
  /** Where it runs. In a process of its own unless told otherwise: DuckDB and large manifests need memory. */
  readonly isolation?: 'none' | 'process'
  /** The most memory for the JavaScript heap of that process; DuckDB has a budget of its own. */
  readonly maxMemoryMb?: number
  /** What becomes of a job whose worker is told to stop. */
  readonly onShutdown?: 'fail' | 'release'
  readonly leaseMs?: number
  readonly maxAttempts?: number
}

const defaultMemoryMb = 2_048

/** The operation that maintains a table of these catalogs. */
export function tableMaintenance(
  catalogs: Catalogs,
  options: TableMaintenanceOptions = {},
): Operation<z.input<typeof maintenancePayload>> {
  const { isolation = 'process', maxMemoryMb = defaultMemoryMb, onShutdown = 'fail', leaseMs, maxAttempts } = options
  return operation(operationName, {
    payload: maintenancePayload,
    lock: lockKeyOf,
    isolation,
    ...(isolation === 'process' ? { maxMemoryMb } : {}),
    onShutdown,
    ...(leaseMs === undefined ? {} : { leaseMs }),
    ...(maxAttempts === undefined ? {} : { maxAttempts }),
    run: (run) => runMaintenance(run, catalogs),
  })
}
