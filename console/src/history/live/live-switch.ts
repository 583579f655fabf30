import { computed, signal } from '@preact/signals';
import { allows, historyAbilities } from '../../api/session.ts';

const storageKey = 'annals.live';

/** Whether the history follows what is recorded. The choice of a reader stays. */
const choice = signal<boolean>(readChoice());
export const isLive = computed(() => choice.value && allows(historyAbilities.all));

export function turnLive(on: boolean): void {
  choice.value = on;
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
