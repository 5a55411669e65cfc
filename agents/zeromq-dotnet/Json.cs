using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.Text;

/// A strict reader and a writer of JSON: neither runtime has one that the compiler can refer to.
sealed class Json
{
    readonly string text;
    int at;

    Json(string text) { this.text = text; }

    /// Dictionaries, lists, texts, decimals, booleans and null.
    public static object Read(string text)
    {
        var json = new Json(text);
        var value = json.Value(0);
        if (json.Peek() != '\0') throw json.Wrong();
        return value;
    }

    FormatException Wrong() { return new FormatException("no JSON at character " + at); }

    char Peek()
    {
        while (at < text.Length && " \t\r\n".IndexOf(text[at]) >= 0) at++;
        return at < text.Length ? text[at] : '\0';
    }

    void Expect(char wanted)
    {
        if (Peek() != wanted) throw Wrong();
        at++;
    }

    object Value(int depth)
    {
        if (depth > 64) throw Wrong();
        switch (Peek())
        {
            case '{':
                var map = new Dictionary<string, object>();
                Each('}', () =>
                {
                    Peek();
                    var name = Text();
                    Expect(':');
                    map[name] = Value(depth + 1);
                });
                return map;
            case '[':
                var list = new List<object>();
                Each(']', () => list.Add(Value(depth + 1)));
                return list;
            case '"': return Text();
            case 't': return Word("true", true);
            case 'f': return Word("false", false);
            case 'n': return Word("null", null);
            default: return Number();
        }
    }

    void Each(char end, Action element)
    {
        at++;
        if (Peek() != end)
        {
            element();
            while (Peek() == ',') { at++; element(); }
        }
        Expect(end);
    }

    object Word(string word, object value)
    {
        if (string.CompareOrdinal(text, at, word, 0, word.Length) != 0) throw Wrong();
        at += word.Length;
        return value;
    }

    object Number()
    {
        var from = at;
        while (at < text.Length && "+-.0123456789eE".IndexOf(text[at]) >= 0) at++;
        decimal number;
        if (!decimal.TryParse(text.Substring(from, at - from), NumberStyles.Float, CultureInfo.InvariantCulture, out number))
            throw Wrong();
        return number;
    }

    string Text()
    {
        Expect('"');
        var built = new StringBuilder();
        for (; at < text.Length && text[at] != '"'; at++)
        {
            if (text[at] != '\\') { built.Append(text[at]); continue; }
            at++;
            var escape = at < text.Length ? "\"\\/bfnrt".IndexOf(text[at]) : -1;
            ushort code;
            if (escape >= 0) built.Append("\"\\/\b\f\n\r\t"[escape]);
            else if (at + 4 < text.Length && text[at] == 'u'
                && ushort.TryParse(text.Substring(at + 1, 4), NumberStyles.AllowHexSpecifier, null, out code))
            {
                built.Append((char)code);
                at += 4;
            }
            else throw Wrong();
        }
        Expect('"');
        return built.ToString();
    }

    /// A dictionary of names and values in turn.
    public static Dictionary<string, object> Map(params object[] pairs)
    {
        var map = new Dictionary<string, object>();
        for (var at = 0; at < pairs.Length; at += 2) map[(string)pairs[at]] = pairs[at + 1];
        return map;
    }

    public static void Write(StringBuilder to, object value)
    {
        var map = value as IDictionary<string, object>;
        if (value == null) to.Append("null");
        else if (value is bool) to.Append((bool)value ? "true" : "false");
        else if (value is string) Write(to, (string)value);
        else if (map != null)
        {
            Write(to, '{', map, '}', pair =>
            {
                Write(to, pair.Key);
                to.Append(':');
                Write(to, pair.Value);
            });
        }
        else if (value is long[]) Write(to, '[', (long[])value, ']', one => to.Append(one));
        else if (value is IEnumerable) Write(to, '[', Objects((IEnumerable)value), ']', one => Write(to, one));
        else to.Append(Convert.ToString(value, CultureInfo.InvariantCulture));
    }

    static IEnumerable<object> Objects(IEnumerable all) { foreach (var one in all) yield return one; }

    static void Write<T>(StringBuilder to, char begin, IEnumerable<T> all, char end, Action<T> write)
    {
        var separator = begin;
        foreach (var one in all)
        {
            to.Append(separator);
            write(one);
            separator = ',';
        }
        if (separator == begin) to.Append(begin);
        to.Append(end);
    }

    static void Write(StringBuilder to, string text)
    {
        to.Append('"');
        foreach (var letter in text)
        {
            if (letter == '"' || letter == '\\') to.Append('\\').Append(letter);
            else if (letter < ' ') to.AppendFormat("\\u{0:x4}", (int)letter);
            else to.Append(letter);
        }
        to.Append('"');
    }
}
