import type { ComponentChildren } from 'preact';
import { FormField } from '../../components/form-field.tsx';

interface JsonEditorProps {
  readonly label: string;
  readonly text: string;
  readonly onText: (text: string) => void;
  /** Why the text is no document; undefined where it is one. */
  readonly fault: string | undefined;
  /** Said below a text that is a document. */
  readonly hint?: ComponentChildren;
  readonly isReadOnly?: boolean;
  readonly rows?: number;
}

/** JSON as text. It is sent as it is written, so every digit stays. */
export function JsonEditor({ label, text, onText, fault, hint, isReadOnly = false, rows }: JsonEditorProps) {
  const lines = text.split('\n').length;
  return (
    <FormField label={label} error={fault} hint={hint}>
      {(control) => (
        <textarea
          {...control}
          class="json-text mono"
          dir="ltr"
          rows={rows ?? Math.min(26, Math.max(8, lines + 1))}
          spellcheck={false}
          autocomplete="off"
          readOnly={isReadOnly}
          value={text}
          onInput={(event) => onText(event.currentTarget.value)}
        />
      )}
    </FormField>
  );
}
