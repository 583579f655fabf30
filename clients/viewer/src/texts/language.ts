import type { HistoryMessages } from '../history-element.ts';
import { type Clock, clockOf } from './clock.ts';
import { de } from './de.ts';
import { en, type TextName } from './en.ts';
import { type Names, namesOf } from './names.ts';

/** Names of texts that have forms for numbers, without the form. */
export type CountedText = TextName extends infer Name ? (Name extends `${infer Base}.other` ? Base : never) : never;

/** All that is said to the reader, in their language. */
export interface Language extends Clock, Names {
  /** A BCP 47 tag. */
  readonly tag: string;
  text(name: TextName, values?: Readonly<Record<string, string>>): string;
  /** Of the texts: that of the page may be another one. */
  readonly direction: 'ltr' | 'rtl';
  /** Of all around them, where the language is written from right to left; undefined: as the page has it. */
  readonly layout: 'rtl' | undefined;
  /** A text with a number, in the form that the number asks for. */
  counted(name: CountedText, count: number): string;
  /** A text as its parts: those between braces are names of what stands there. */
  parts(name: TextName): readonly string[];
  number(count: number): string;
}

/**
 * The texts, dates and words of a language. Languages without texts of their own have the English ones, with their own
 * dates; a tag or a time zone that nobody knows is left out.
 */
export function languageOf(tag: string, timeZone: string, messages: HistoryMessages | undefined): Language {
  const known = knownTag(tag);
  const own: Readonly<Record<string, string>> = new Intl.Locale(known).language === 'de' ? de : en;
  const texts: Readonly<Record<string, string>> = { ...own, ...messages?.texts };
  const numbers = new Intl.NumberFormat(known);
  const plurals = new Intl.PluralRules(known);
  const text: Language['text'] = (name, values = {}) => filled(texts[name] ?? '', values);
  return {
    tag: known,
    text,
    direction: rightToLeft.test(texts.changed ?? '') ? 'rtl' : 'ltr',
    layout: rightToLeftScripts.has(new Intl.Locale(known).maximize().script ?? '') ? 'rtl' : undefined,
    counted(name, count) {
      const form = texts[`${name}.${plurals.select(count)}`] ?? texts[`${name}.other`] ?? '';
      return filled(form, { n: numbers.format(count) });
    },
    parts: (name) => (texts[name] ?? '').split(/[{}]/),
    number: (count) => numbers.format(count),
    ...clockOf(known, timeZone),
    ...namesOf(messages, text),
  };
}

/** By ISO 15924. */
const rightToLeftScripts = new Set(['Adlm', 'Arab', 'Hebr', 'Mand', 'Nkoo', 'Rohg', 'Syrc', 'Thaa']);

/** Letters of Hebrew, Arabic and their neighbours. */
const rightToLeft = /[\u0591-\u08ff\ufb1d-\ufdfd\ufe70-\ufefc]/;

function filled(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}

function knownTag(tag: string): string {
  try {
    return Intl.getCanonicalLocales(tag)[0] ?? 'en';
  } catch {
    return 'en';
  }
}
