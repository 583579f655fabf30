import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { type Language, languageOf } from '../texts/language.ts';

export const LanguageContext = createContext<Language>(languageOf('en', '', undefined));

/** The texts and dates of the reader. */
export function useLanguage(): Language {
  return useContext(LanguageContext);
}
