import { type Signal, signal } from '@preact/signals';

/** A choice of the reader, which the browser keeps. */
export interface StoredChoice<Choice extends string> {
  readonly value: Signal<Choice>;
  choose(choice: Choice): void;
}

/**
 * The choice under a key of the browser's storage, or else the first one.
 *
 * @example
 * const live = storedChoice('annals.live', ['on', 'off']);
 */
export function storedChoice<Choice extends string>(
  key: string,
  choices: readonly [Choice, ...Choice[]],
): StoredChoice<Choice> {
  const value = signal(read(key, choices));
  return {
    value,
    choose(choice) {
      value.value = choice;
      try {
        localStorage.setItem(key, choice);
      } catch {
        // Without storage the choice lasts as long as the page.
      }
    },
  };
}

function read<Choice extends string>(key: string, choices: readonly [Choice, ...Choice[]]): Choice {
  try {
    const stored = localStorage.getItem(key);
    return choices.find((choice) => choice === stored) ?? choices[0];
  } catch {
    return choices[0];
  }
}
