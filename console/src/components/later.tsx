import type { ComponentType } from 'preact';
import { useCode } from '../api/use-code.ts';
import { FailureBox } from './failure-box.tsx';

/**
 * A part of a page, such as a dialog, whose code is fetched when it is first shown: most readers never open it.
 *
 * @example
 * const ExportDialog = later(async () => (await import('./export-dialog.tsx')).ExportDialog);
 */
export function later<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  return function Later(props: Props) {
    const { code: Part, error } = useCode(load);
    if (error !== undefined) return <FailureBox error={error} />;
    return Part === undefined ? null : <Part {...props} />;
  };
}
