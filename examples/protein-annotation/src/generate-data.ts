import { writeData } from './sequences/data.ts'

writeData()
