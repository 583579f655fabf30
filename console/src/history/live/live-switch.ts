import { signal } from '@preact/signals';

const storageKey = 'annals.live';

/** Whether the history follows what is recorded. The choice of a reader stays. */
export const isLive = signal<boolean>(readChoice());

export function turnLive(on: boolean): void {
  isLive.value = on;
  try {
    localStorage.setItem(storageKey, on ? 'on' : 'off');
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

function readChoice(): boolean {
  try {
    return localStorage.getItem(storageKey) !== 'off';
  } catch {
    return true;
  }
}
