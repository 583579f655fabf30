import { signal } from '@preact/signals';
import { failureOf } from '../api/failure.ts';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isError: boolean;
}

/** Milliseconds for which a message of success stays. Errors stay until they are closed. */
const duration = 5_000;

/** The messages at the edge of the page. */
export const toasts = signal<readonly Toast[]>([]);
let made = 0;

export function tell(text: string): void {
  const id = add(text, false);
  setTimeout(() => closeToast(id), duration);
}

/** Shows the error of something that the reader asked for. */
export function tellFailure(error: unknown): void {
  const { title, details, requestId } = failureOf(error);
  add([title, ...details, ...(requestId === undefined ? [] : [`Request ${requestId}`])].join(' '), true);
}

function add(text: string, isError: boolean): number {
  made += 1;
  toasts.value = [...toasts.value.slice(-3), { id: made, text, isError }];
  return made;
}

export function closeToast(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}
