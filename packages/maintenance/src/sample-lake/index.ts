export {
  makeSampleLake,
  sampleLakeTables,
  type SampleLake,
  type SampleLakeOptions,
  type SampleLakeProgress,
} from './make-sample-lake.ts'
