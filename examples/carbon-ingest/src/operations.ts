import { aggregation } from './aggregation.ts'
import { csvIngest } from './csv-ingest.ts'
import { emissionRecalc } from './emission-recalc.ts'
import { factorIngest } from './factor-ingest.ts'

export const operations = [csvIngest, factorIngest, emissionRecalc, aggregation]
