import type { Address } from './documents.ts';
import type { Random } from './random.ts';

/** Who changes documents without being a person: the shop itself, connected systems, and guests nobody knows. */
export const system = 'system';
export const external = 'external';
export const unknown = 'unknown';

/** Who works in the shop, by what they look after. All invented. */
export const staff = {
  sales: ['Jane Doe', 'Zoë Østergård', 'Jan Novotný', 'Siobhán O’Hara', 'Tomás Ibáñez'],
  warehouse: ['Łukasz Żurek', 'Mette Kjær', 'John Ashdown', 'Aïcha Benmoussa'],
  catalogue: ['Jürgen Weißmüller', 'Chloé Lefèvre-Duval', '田中 葵'],
  marketing: ['Ines Caldeira', 'Ömer Yıldızlı'],
  service: ['Joan Petterly', 'Åsa Lindqvist-Berg'],
  administration: ['Dr. Annika "Anni" Rautio'],
} as const;

const firstNames = [
  'Ada',
  'Beatriz',
  'Bjørn',
  'Camille',
  'Dagný',
  'Elif',
  'Emil',
  'Eszter',
  'Fatou',
  'Giulia',
  'Håkon',
  'Ilse',
  'Imre',
  'Jānis',
  'Jorge',
  'Joëlle',
  'Katarzyna',
  'Lars',
  'Lucía',
  'Marek',
  'Milica',
  'Nils',
  'Noor',
  'Óscar',
  'Paula',
  'Réka',
  'Šárka',
  'Søren',
  'Tereza',
  'Tuomas',
  'Valérie',
  'Xenia',
] as const;

const lastNames = [
  'Almqvist-Ruud',
  'Berrada',
  'Brandtner',
  'Çelikkaya',
  'Dąbrowiak',
  'De Vlaming',
  'Echeberri',
  'Fennimore',
  'Grönholm',
  'Halvardsen',
  'Iversdatter',
  'Jelínková',
  'Kőszegfalvi',
  'Lindenhoek',
  'Mac Aoidh',
  'Nørremark',
  'Oyelarin',
  'Pålsgard',
  'Quintela',
  'Rothenbühl',
  'Sæterdal',
  'Tannhäuser',
  'Ulmanis-Kalns',
  'Vasconcelhos',
  'Wichterle',
  'Ylönkoski',
] as const;

const cities = [
  { city: 'Aarhus', country: 'DK', zips: ['8000', '8200', '8210'] },
  { city: 'Bergen', country: 'NO', zips: ['5003', '5015', '5033'] },
  { city: 'Brno', country: 'CZ', zips: ['602 00', '612 00'] },
  { city: 'Gdańsk', country: 'PL', zips: ['80-001', '80-288'] },
  { city: 'Genève', country: 'CH', zips: ['1201', '1205'] },
  { city: 'Göteborg', country: 'SE', zips: ['411 03', '413 01'] },
  { city: 'Graz', country: 'AT', zips: ['8010', '8020', '8041'] },
  { city: 'Köln', country: 'DE', zips: ['50667', '50823', '51063'] },
  { city: 'Lyon', country: 'FR', zips: ['69002', '69007'] },
  { city: 'Malmö', country: 'SE', zips: ['211 19', '214 26'] },
  { city: 'Utrecht', country: 'NL', zips: ['3511 AA', '3581 KV'] },
] as const;

const streets = [
  'Havnegade',
  'Lindenweg',
  'Rue du Moulin',
  'Storgatan',
  'Ulica Długa',
  'Mlýnská',
  'Kirchgasse',
  'Kaistraat',
];

export interface Person {
  firstName: string;
  lastName: string;
  email: string;
}

/** A person who does not exist, with an e-mail address under example.com, which belongs to nobody. */
export function inventPerson(random: Random, number: number): Person {
  const firstName = random.pick(firstNames);
  const lastName = random.pick(lastNames);
  return { firstName, lastName, email: mailAddress(firstName, lastName, number) };
}

export function mailAddress(firstName: string, lastName: string, number: number): string {
  return `${mailName(firstName)}.${mailName(lastName)}${number % 100}@example.com`;
}

export function inventAddress(random: Random): Address {
  const { city, country, zips } = random.pick(cities);
  return { street: `${random.pick(streets)} ${random.integer(1, 140)}`, zip: random.pick(zips), city, country };
}

export function inventPhone(random: Random): string {
  return `+00 555 ${random.integer(10, 99)} ${random.integer(1000, 9999)}`;
}

function mailName(name: string): string {
  const plain = name.toLowerCase().replaceAll('ø', 'o').replaceAll('æ', 'ae').replaceAll('ı', 'i');
  return plain.normalize('NFD').replaceAll(/[^a-z]/g, '');
}
