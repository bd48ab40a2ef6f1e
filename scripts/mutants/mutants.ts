import { mutants as ofEngine } from './engine-mutants.ts'
import { mutants as ofIceberg } from './iceberg-mutants.ts'
import { mutants as ofServer } from './server-mutants.ts'

export const mutants = [...ofEngine, ...ofIceberg, ...ofServer]
