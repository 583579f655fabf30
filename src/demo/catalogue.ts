import type { Product } from './documents.ts';
import type { Random } from './random.ts';

interface Model {
  code: string;
  en: string;
  de: string;
  amount: number;
  weightKg: number;
  categories: string[];
  attributes: Record<string, string | number | boolean>;
}

/** What the shop sells: coffee makers and what belongs to them, all under invented names. */
const models: readonly Model[] = [
  machine('alba-1', 'Alba 1', 649, 9.4, { boilers: 1, pressureBar: 15 }),
  machine('alba-2', 'Alba 2', 1249, 14.8, { boilers: 2, pressureBar: 9 }),
  machine('alba-2-walnut', 'Alba 2 Walnut', 1399, 15.1, { boilers: 2, pressureBar: 9, panels: 'walnut' }),
  machine('brisk-go', 'Brisk Go', 189, 3.2, { boilers: 1, pressureBar: 15, travel: true }),
  machine('corvo-pro', 'Corvo Pro', 3890, 41, { boilers: 3, pressureBar: 9, groups: 2 }),
  grinder('mill-40', 'Mill 40', 119, 2.1, { burrs: 'conical', sizeMm: 40 }),
  grinder('mill-54', 'Mill 54', 259, 4.6, { burrs: 'flat', sizeMm: 54 }),
  grinder('mill-64', 'Mill 64', 479, 7.9, { burrs: 'flat', sizeMm: 64, singleDose: true }),
  grinder('mill-hand', 'Hand Mill', 74.5, 0.6, { burrs: 'conical', sizeMm: 38, travel: true }),
  beans('beans-dawn', 'Dawn', 13.9, 'light'),
  beans('beans-harbour', 'Harbour Blend', 11.5, 'medium'),
  beans('beans-midnight', 'Midnight', 12.4, 'dark'),
  beans('beans-quiet', 'Quiet (decaf)', 14.2, 'medium'),
  beans('beans-summit', 'Summit No. 4', 18.75, 'light'),
  extra('cup-espresso', 'Espresso cup', 'Espressotasse', 8.9, 'cups', { millilitres: 70 }),
  extra('cup-cappuccino', 'Cappuccino cup', 'Cappuccinotasse', 11.9, 'cups', { millilitres: 180 }),
  extra('kettle-gooseneck', 'Gooseneck kettle', 'Schwanenhalskessel', 89, 'brewing', { litres: 0.8 }),
  extra('scale-mini', 'Mini scale', 'Feinwaage', 44.9, 'brewing', { precisionGrams: 0.1 }),
  extra('tamper-58', 'Tamper 58 mm', 'Tamper 58 mm', 32, 'tools', { sizeMm: 58 }),
  extra('jug-350', 'Milk jug 350 ml', 'Milchkännchen 350 ml', 21.5, 'tools', { millilitres: 350 }),
  extra('filter-paper', 'Paper filters, 100', 'Papierfilter, 100 Stück', 4.95, 'brewing', { pieces: 100 }),
  extra('descaler', 'Descaler', 'Entkalker', 9.8, 'care', { millilitres: 250 }),
  extra('brush-set', 'Brush set', 'Bürstenset', 12.6, 'care', { pieces: 3 }),
  extra('knock-box', 'Knock box', 'Abschlagbehälter', 27.3, 'tools', { colour: 'black' }),
  extra('water-filter', 'Water filter', 'Wasserfilter', 16.4, 'care', { litres: 70 }),
  extra('dripper-2', 'Dripper, size 2', 'Handfilter, Größe 2', 18.2, 'brewing', { material: 'porcelain' }),
];

/** The products of the first day, by code. */
export function openingCatalogue(random: Random): [code: string, product: Product][] {
  return models.map(({ code, en, de, amount, ...rest }) => [
    code,
    {
      name: { en, de },
      published: true,
      price: { amount, currency: 'EUR', taxClass: rest.categories.includes('beans') ? 'REDUCED' : 'STANDARD' },
      stock: random.integer(20, 160),
      ...structuredClone(rest),
    },
  ]);
}

function machine(code: string, name: string, amount: number, weightKg: number, attributes: Model['attributes']): Model {
  const [en, de] = [`Espresso machine ${name}`, `Espressomaschine ${name}`];
  return { code, en, de, amount, weightKg, categories: ['machines', 'espresso'], attributes };
}

function grinder(code: string, name: string, amount: number, weightKg: number, attributes: Model['attributes']): Model {
  const [en, de] = [`Grinder ${name}`, `Kaffeemühle ${name}`];
  return { code, en, de, amount, weightKg, categories: ['grinders'], attributes };
}

function beans(code: string, name: string, amount: number, roast: string): Model {
  const [en, de] = [`Coffee beans ${name}`, `Kaffeebohnen ${name}`];
  return { code, en, de, amount, weightKg: 0.5, categories: ['beans'], attributes: { roast, grams: 500 } };
}

function extra(
  code: string,
  en: string,
  de: string,
  amount: number,
  category: string,
  attributes: Model['attributes'],
): Model {
  return { code, en, de, amount, weightKg: 0.4, categories: ['accessories', category], attributes };
}
