import { beginTable, columns, dayMs, type LakeTable } from './lake-table.ts'

/** Code, name, capital, continent, and inhabitants in millions. */
const known = `
AR Argentina|Buenos Aires|South America|46
AT Austria|Vienna|Europe|9
AU Australia|Canberra|Oceania|26
BD Bangladesh|Dhaka|Asia|173
BE Belgium|Brussels|Europe|12
BG Bulgaria|Sofia|Europe|6
BR Brazil|Brasília|South America|212
CA Canada|Ottawa|North America|40
CH Switzerland|Bern|Europe|9
CL Chile|Santiago|South America|20
CN China|Beijing|Asia|1410
CO Colombia|Bogotá|South America|52
CZ Czechia|Prague|Europe|11
DE Germany|Berlin|Europe|84
DK Denmark|Copenhagen|Europe|6
EE Estonia|Tallinn|Europe|1
EG Egypt|Cairo|Africa|114
ES Spain|Madrid|Europe|48
ET Ethiopia|Addis Ababa|Africa|128
FI Finland|Helsinki|Europe|6
FR France|Paris|Europe|68
GB United Kingdom|London|Europe|68
GH Ghana|Accra|Africa|34
GR Greece|Athens|Europe|10
HR Croatia|Zagreb|Europe|4
HU Hungary|Budapest|Europe|10
ID Indonesia|Jakarta|Asia|281
IE Ireland|Dublin|Europe|5
IN India|New Delhi|Asia|1438
IS Iceland|Reykjavík|Europe|0
IT Italy|Rome|Europe|59
JP Japan|Tokyo|Asia|124
KE Kenya|Nairobi|Africa|55
KR South Korea|Seoul|Asia|52
LT Lithuania|Vilnius|Europe|3
LV Latvia|Riga|Europe|2
MA Morocco|Rabat|Africa|38
MX Mexico|Mexico City|North America|130
NG Nigeria|Abuja|Africa|228
NL Netherlands|Amsterdam|Europe|18
NO Norway|Oslo|Europe|6
NZ New Zealand|Wellington|Oceania|5
PE Peru|Lima|South America|34
PK Pakistan|Islamabad|Asia|247
PL Poland|Warsaw|Europe|37
PT Portugal|Lisbon|Europe|11
RO Romania|Bucharest|Europe|19
RS Serbia|Belgrade|Europe|7
SE Sweden|Stockholm|Europe|11
SI Slovenia|Ljubljana|Europe|2
SK Slovakia|Bratislava|Europe|5
TH Thailand|Bangkok|Asia|72
TR Türkiye|Ankara|Asia|85
UA Ukraine|Kyiv|Europe|38
US United States|Washington, D.C.|North America|335
VN Vietnam|Hanoi|Asia|100
ZA South Africa|Pretoria|Africa|63`

/** Written once, as one file: there is nothing to do. */
export const countries: LakeTable = {
  namespace: 'reference',
  name: 'countries',
  story: 'written once, as one file: it needs nothing',
  make: async (making) => {
    const { table, at } = await beginTable(making, countries, making.nowMs - 90 * dayMs, {
      schema: {
        fields: columns({ code: 'string', name: 'string', capital: 'string', continent: 'string', millions: 'int' }),
        identifierFieldIds: [1],
      },
      properties: { comment: 'Countries by their ISO 3166-1 code.' },
    })
    at(making.nowMs - 60 * dayMs)
    await table.append(
      known
        .trim()
        .split('\n')
        .map((line) => {
          const [name = '', capital = '', continent = '', millions = ''] = line.slice(3).split('|')
          return { code: line.slice(0, 2), name, capital, continent, millions: Number(millions) }
        }),
    )
    return table
  },
}
