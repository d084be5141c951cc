"""First bytes of files of many formats, as programs write them."""

import codecs
import struct

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(20)
JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0" + bytes(20)
GIF = b"GIF89a\x01\0\x01\0\x80\0\0"
WEBP = b"RIFF\x24\0\0\0WEBPVP8 " + bytes(8)
BMP = b"BM" + struct.pack("<IHHIIii", 70, 0, 0, 54, 40, 1, 1) + bytes(20)
TIFF = b"II*\0\x08\0\0\0" + bytes(8)
ICO = b"\0\0\x01\0\x01\0\x10\x10\0\0\x01\0\x20\0" + bytes(8)
HEIC = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"
AVIF = b"\0\0\0\x1cftypavif\0\0\0\0avifmif1"
SVG = b'<?xml version="1.0"?>\n<!-- drawn -->\n<!DOCTYPE svg>\n<svg xmlns="http://www.w3.org/2000/svg"/>'
MP3 = b"\xff\xfb\x90\x64" + bytes(20)
MP3_TAGGED = b"ID3\x04\0\0\0\0\x0f\x76TIT2" + bytes(20)
WAV = b"RIFF\x24\0\0\0WAVEfmt " + bytes(8)
FLAC = b"fLaC\0\0\0\x22" + bytes(20)
OGG = b"OggS\0\x02" + bytes(20)
M4A = b"\0\0\0\x20ftypM4A \0\0\0\0M4A mp42"
AAC = b"\xff\xf1\x50\x80" + bytes(20)
AMR = b"#!AMR\n" + bytes(20)
MP4 = b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41"
MOV = b"\0\0\0\x14ftypqt  \0\0\x02\0qt  "
OLD_MOV = b"\0\0\x10\0moov" + bytes(20)
THREE_GP = b"\0\0\0\x18ftyp3gp4\0\0\0\0isom3gp4"
WEBM = b"\x1a\x45\xdf\xa3\x9fB\x86\x81\x01B\xf7\x81\x01B\xf2\x81\x04B\xf3\x81\x08B\x82\x84webm"
MKV = b"\x1a\x45\xdf\xa3\xa3B\x86\x81\x01B\xf7\x81\x01B\xf2\x81\x04B\xf3\x81\x08B\x82\x88matroska"
AVI = b"RIFF\x24\0\0\0AVI LIST" + bytes(8)
MPEG = b"\0\0\x01\xba\x44" + bytes(20)
FLV = b"FLV\x01\x05\0\0\0\x09" + bytes(8)
ASF = b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\0\xaa\0\x62\xce\x6c" + bytes(8)
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< >>\nendobj\n"
LATE_PDF = b"HTTP junk\r\n" * 50 + PDF
ZIP = b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0" + bytes(20)
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(40)
RTF = b"{\\rtf1\\ansi\\deff0 hello}"
GZIP = b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + bytes(8)
ELF = b"\x7fELF\x02\x01\x01" + bytes(20)
PE = b"MZ\x90\0\x03\0\0\0\x04\0\0\0\xff\xff" + bytes(80)
MACH_O = b"\xcf\xfa\xed\xfe\x07\0\0\x01" + bytes(20)
FAT_MACH_O = b"\xca\xfe\xba\xbe\0\0\0\x02" + bytes(20)
BINARY = b"\x01\x02\x03\0\0\xff\xfe\0\x80\x81\0" * 20

CHINESE = "姓名,生日\n张三,1990-01-01\n李四,1985-12-31\n" * 3
TEXTS = {
    "ascii": b"hello, world\n",
    "utf-8": CHINESE.encode(),
    "utf-8 with mark": codecs.BOM_UTF8 + CHINESE.encode(),
    "utf-16 with mark": codecs.BOM_UTF16_LE + CHINESE.encode("utf-16-le"),
    "utf-16 big with mark": codecs.BOM_UTF16_BE + CHINESE.encode("utf-16-be"),
    "utf-32 with mark": codecs.BOM_UTF32_LE + CHINESE.encode("utf-32-le"),
    "utf-16 evident": CHINESE.encode("utf-16-le"),
    "utf-16 big evident": b"\0h\0e\0l\0l\0o\0\n",
    "utf-32 evident": CHINESE.encode("utf-32-be"),
    "gb18030": CHINESE.encode("gb18030"),
    "big5": "姓名,生日\n張三\n".encode("big5") * 3,
    "shift-jis": "名前,日付\nさくら\n".encode("shift-jis") * 3,
    "iso-2022-jp": "名前,日付\nさくら\n".encode("iso-2022-jp") * 3,
    "latin-1": "Käse für alle\n".encode("latin-1"),
    "terminal": b"\x1b[31mred\x1b[0m plain\n",
    "cut character": "中".encode()[:2],
    "begins like a program": b"MZ is the beginning of a program, and of this line.\n",
    "begins like a picture": b"BMI: 22.5, which is well\n",
    "begins like sound": b"ID3 tags explained\n",
}
