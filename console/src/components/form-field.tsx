import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

export interface FormFieldProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  /** What is wrong with the value; undefined where nothing is. */
  readonly error?: string | undefined;
  /** Makes the control, with these attributes on it. */
  readonly children: (control: {
    readonly id: string;
    readonly 'aria-describedby': string;
    readonly 'aria-invalid': boolean;
  }) => ComponentChildren;
}

/** A control of a form with its label, a hint, and its error right below it. */
export function FormField({ label, hint, error, children }: FormFieldProps) {
  const id = useId();
  return (
    <div class={`form-field${error === undefined ? '' : ' invalid'}`}>
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': `${id}-text`, 'aria-invalid': error !== undefined })}
      <div id={`${id}-text`} class="form-text">
        {error === undefined ? hint : <span class="form-error">{error}</span>}
      </div>
    </div>
  );
}
